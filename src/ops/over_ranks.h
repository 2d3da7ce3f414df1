#pragma once

// Ops over ranks exchange data between the threads or processes that run one graph together. Each rank of the group
// `group_name` runs the same ops over the group in the same order; `world_size` is the number of ranks. A group of one
// rank is a single process, and each of these ops is then a copy.
//
// A reduction adds in f32 in rank order and rounds once, so the bits are the same on each rank and in each run.

#include "base/error.h"
#include "ir/shape_rules.h"

namespace weft {

inline constexpr std::int64_t kMostRanks = 65'536;

// Returns the number of ranks. Throws UserError unless the call names a group and a valid number of ranks.
inline std::int64_t checked_world_size(const OpRequest& request, const char* op) {
  const Dim& size = request.attributes.at("world_size").dim();
  USER_CHECK(size.is_number() && size.number() >= 1 && size.number() <= kMostRanks,
             "[{}] world_size must be in [1, {}], but is {}", op, kMostRanks, size.text());
  USER_CHECK(!request.attributes.at("group_name").string().empty(), "[{}] group_name must name a group", op);
  return size.number();
}

// Returns the axis `dim` of x. Throws UserError if x is of a block type or packed, or if slices along that axis would
// split bytes.
inline std::size_t checked_rank_axis(const OpRequest& request, const char* op) {
  const Meta& x = request.operand(0);
  const Dim& dim = request.attributes.at("dim").dim();
  USER_CHECK(dim.is_number(), "[{}] dim must be a number, but is {}", op, dim.text());
  const auto axis = static_cast<std::size_t>(checked_axis(dim.number(), x, op));
  USER_CHECK(!is_block(x.dtype) && x.packed.empty(), "[{}] x must have elements of their own, but is {}", op, x.text());
  const bool is_packed = x.dtype == DType::f4e2m1 || x.dtype == DType::i4;
  USER_CHECK(!is_packed || (x.is_contiguous() && axis + 1 < x.rank()),
             "[{}] x must be contiguous and dim not its last, as two elements share a byte, but x is {}", op, x.text());
  return axis;
}

// Throws UserError unless x has a dtype that reductions support: f32, bf16 or f16.
inline void require_summable(const OpRequest& request, const char* op) {
  const Meta& x = request.operand(0);
  USER_CHECK(x.is_tensor() && (x.dtype == DType::f32 || x.dtype == DType::bf16 || x.dtype == DType::f16),
             "[{}] x must be of f32, bf16 or f16, but is {}", op, x.text());
}

// Returns the type of one rank's part of x along `dim`. Throws UserError unless all parts have the same size for all
// values of the symbols.
inline std::vector<Meta> part_of_ranks(const OpRequest& request, const char* op) {
  const std::int64_t ranks = checked_world_size(request, op);
  const std::size_t axis = checked_rank_axis(request, op);
  Shape shape = request.operand(0).shape;
  const Dim part = floordiv(shape[axis], ranks);
  USER_CHECK(part * Dim(ranks) == shape[axis], "[{}] dim {} of x must divide by the {} ranks, but x is {}", op, axis,
             ranks, request.operand(0).text());
  shape[axis] = part;
  return {Meta::tensor(request.operand(0).dtype, std::move(shape))};
}

inline std::array<GivenAttribute, 3> rank_attributes(std::int64_t dim, std::int64_t world_size,
                                                     std::string_view group_name) {
  return {{{"dim", dim}, {"world_size", world_size}, {"group_name", group_name}}};
}

}  // namespace weft
