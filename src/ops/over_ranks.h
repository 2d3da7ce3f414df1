#pragma once

// Ops over ranks: what the threads or processes that run one graph together hand each other. Every rank of the group
// `group_name` runs the same ops over it in the same order; `world_size` is how many they are. A group of one is a
// process alone, for which each of these ops is a copy.
//
// The sum of a reduction is taken in f32 in the order of the ranks and rounded once: the same bits on every rank and in
// every run.

#include "base/error.h"
#include "ir/shape_rules.h"

namespace weft {

inline constexpr std::int64_t kMostRanks = 65'536;

// How many ranks the call is over; UserError unless it names a group and how many they are.
inline std::int64_t checked_world_size(const OpRequest& request, const char* op) {
  const Dim& size = request.attributes.at("world_size").dim();
  USER_CHECK(size.is_number() && size.number() >= 1 && size.number() <= kMostRanks,
             "[{}] world_size must be in [1, {}], but is {}", op, kMostRanks, size.text());
  USER_CHECK(!request.attributes.at("group_name").string().empty(), "[{}] group_name must name a group", op);
  return size.number();
}

// The axis `dim` of x, whose elements can be told apart in memory.
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

// Reductions take the plain dtypes of activations.
inline void require_summable(const OpRequest& request, const char* op) {
  const Meta& x = request.operand(0);
  USER_CHECK(x.is_tensor() && (x.dtype == DType::f32 || x.dtype == DType::bf16 || x.dtype == DType::f16),
             "[{}] x must be of f32, bf16 or f16, but is {}", op, x.text());
}

// x with a rank's part of its axis `dim`; UserError unless every rank gets as much whatever the symbols are.
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
