// Ops over ranks: all_reduce, reduce_scatter, all_gather, rank_slice. The other ranks read a rank's operand in place,
// or from a copy in scratch if it is not contiguous.

#include <algorithm>
#include <cstring>

#include <fmt/ranges.h>

#include "base/error.h"
#include "kernels/registry.h"
#include "kernels/strided.h"

namespace weft {
namespace {

using Memories = RankGroup::Memories;
using Bytes = std::span<const std::byte>;

// The rank that runs the call. Without a group the process is the only rank and waits for no other.
struct LocalRank {
  RankGroup* group = nullptr;
  int rank = 0;
  std::int64_t size = 1;

  void meet(const std::string& purpose, Bytes own, const std::function<std::int64_t(Memories)>& read) const {
    if (group != nullptr) return group->meet(purpose, own, read);
    read({&own, 1});
  }
};

LocalRank local_rank(const KernelCall& call, const char* op) {
  const std::int64_t size = call.attributes.at("world_size").integer();
  if (size == 1) return {};
  const std::string& name = call.attributes.at("group_name").string();
  USER_CHECK(call.groups != nullptr, "[{}] wanted the {} ranks of group {}, but this process is alone", op, size, name);
  RankGroup& group = call.groups->at(name, size, op);
  return {&group, group.rank(), size};
}

// All ranks at one barrier must run the same op on the same types.
std::string purpose_of(const KernelCall& call, const char* op) {
  const TensorView& x = call.operands[0];
  return fmt::format("{} of {}[{}]", op, dtype_text(x.dtype), fmt::join(x.size, x.size + x.rank, ", "));
}

Bytes contiguous_bytes(const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const auto bytes = static_cast<std::size_t>(bytes_of(x.dtype, x.elements()));
  if (x.meta->is_contiguous()) return {x.data, bytes};
  const auto width = static_cast<std::size_t>(bytes_of(x.dtype, 1));
  std::byte* to = call.scratch.data();
  for_each_index(x.size, x.rank, [&](const std::int64_t* index) {
    std::memcpy(to, x.data + element_at(x, index, x.rank) * static_cast<std::int64_t>(width), width);
    to += width;
  });
  return {call.scratch.data(), bytes};
}

// x as [outer, parts, inner]. Each part along the axis has `inner` contiguous elements.
struct Parts {
  std::int64_t outer = 1;
  std::int64_t inner = 1;  // elements
};

Parts parts_of(const TensorView& whole, const KernelCall& call, std::int64_t ranks) {
  const std::int64_t dim = call.attributes.at("dim").integer();
  const auto axis = static_cast<int>(dim < 0 ? dim + whole.rank : dim);
  Parts parts;
  for (int i = 0; i < whole.rank; ++i) (i < axis ? parts.outer : parts.inner) *= whole.size[i];
  parts.inner /= ranks;
  return parts;
}

// Adds in f32, in the order of the ranks, and rounds once.
void add_ranks(DType dtype, Memories all, std::int64_t from, std::int64_t count, std::byte* to, std::int64_t at) {
  for (std::int64_t i = 0; i < count; ++i) {
    float sum = load_float(dtype, all[0].data(), from + i);
    for (std::size_t rank = 1; rank < all.size(); ++rank) sum += load_float(dtype, all[rank].data(), from + i);
    store_float(dtype, to, at + i, sum);
  }
}

std::int64_t bytes_from_others(Memories all, std::int64_t bytes_of_one) {
  return static_cast<std::int64_t>(all.size() - 1) * bytes_of_one;
}

// Each rank adds a share of the elements, then copies the sums of the other ranks. It reads as many bytes as with a
// ring.
void all_reduce(const KernelCall& call) {
  const LocalRank local = local_rank(call, "all_reduce");
  const TensorView& y = call.results[0];
  const std::string purpose = purpose_of(call, "all_reduce");
  const std::int64_t count = y.elements(), share = (count + local.size - 1) / local.size;
  const auto begin = [&](std::int64_t rank) { return std::min(rank * share, count); };
  const auto bytes_at = [&](std::int64_t elements) { return bytes_of(y.dtype, elements); };
  const std::int64_t own = begin(local.rank), length = begin(local.rank + 1) - own;
  local.meet(purpose, contiguous_bytes(call), [&](Memories all) {
    add_ranks(y.dtype, all, own, length, y.data, own);
    return bytes_from_others(all, bytes_at(length));
  });
  const Bytes sums{y.data, static_cast<std::size_t>(bytes_at(count))};
  local.meet(purpose + ", its sums", sums, [&](Memories all) {
    for (std::int64_t rank = 0; rank < local.size; ++rank) {
      const std::int64_t at = bytes_at(begin(rank)), bytes = bytes_at(begin(rank + 1)) - at;
      if (rank != local.rank && bytes > 0)
        std::memcpy(y.data + at, all[static_cast<std::size_t>(rank)].data() + at, static_cast<std::size_t>(bytes));
    }
    return bytes_at(count - length);
  });
}

void reduce_scatter(const KernelCall& call) {
  const LocalRank local = local_rank(call, "reduce_scatter");
  const TensorView& y = call.results[0];
  const Parts parts = parts_of(call.operands[0], call, local.size);
  local.meet(purpose_of(call, "reduce_scatter"), contiguous_bytes(call), [&](Memories all) {
    for (std::int64_t outer = 0; outer < parts.outer; ++outer)
      add_ranks(y.dtype, all, (outer * local.size + local.rank) * parts.inner, parts.inner, y.data,
                outer * parts.inner);
    return bytes_from_others(all, bytes_of(y.dtype, y.elements()));
  });
}

void all_gather(const KernelCall& call) {
  const LocalRank local = local_rank(call, "all_gather");
  const TensorView &x = call.operands[0], &y = call.results[0];
  const Parts parts = parts_of(y, call, local.size);
  const std::int64_t bytes = bytes_of(x.dtype, parts.inner);
  local.meet(purpose_of(call, "all_gather"), contiguous_bytes(call), [&](Memories all) {
    for (std::int64_t outer = 0; outer < parts.outer; ++outer)
      for (std::int64_t rank = 0; rank < local.size; ++rank)
        std::memcpy(y.data + (outer * local.size + rank) * bytes,
                    all[static_cast<std::size_t>(rank)].data() + outer * bytes, static_cast<std::size_t>(bytes));
    return bytes_from_others(all, parts.outer * bytes);
  });
}

void rank_slice(const KernelCall& call) {
  const LocalRank local = local_rank(call, "rank_slice");
  const TensorView& y = call.results[0];
  const Parts parts = parts_of(call.operands[0], call, local.size);
  const std::int64_t bytes = bytes_of(y.dtype, parts.inner);
  const Bytes x = contiguous_bytes(call);
  for (std::int64_t outer = 0; outer < parts.outer; ++outer)
    std::memcpy(y.data + outer * bytes, x.data() + (outer * local.size + local.rank) * bytes,
                static_cast<std::size_t>(bytes));
}

}  // namespace
}  // namespace weft

KERNELS(reference, over_ranks) {
  const auto room_for_a_copy = [](const KernelRequest& request) {
    const Meta& x = *request.operands[0];
    return x.is_contiguous() ? Dim(0) : Meta::tensor(x.dtype, x.shape).bytes();
  };
  const auto add = [&](const char* op, void (*run)(const KernelCall&)) {
    registry.add({.op = op, .provider = "reference", .scratch_bytes = room_for_a_copy, .run = run});
  };
  add("all_reduce", all_reduce);
  add("reduce_scatter", reduce_scatter);
  add("all_gather", all_gather);
  add("rank_slice", rank_slice);
}
