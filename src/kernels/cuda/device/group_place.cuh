#pragma once

// The group of a thread, if a group is in `lanes` neighbouring threads and blocks have the order GroupOrder.

#include "kernels/cuda/device/memory.cuh"

namespace weft::cuda {

struct GroupPlace {
  std::uint32_t row;
  std::uint32_t group;  // of the row
  std::uint32_t lane;   // in the group
  // Lanes after the end compute the last group and store nothing, so that every shuffle has its whole warp.
  bool is_live;
};

template <int threads, int lanes>
WEFT_DEVICE GroupPlace group_place(const GroupOrder& order, std::uint32_t rows, std::uint32_t groups) {
  const std::uint32_t outer = quotient(block_index(), order.slices);
  const std::uint32_t slice = block_index() - outer * order.slices.divisor;
  const std::uint32_t mine = slice * (threads / lanes) + thread_index() / lanes;
  const std::uint32_t count = order.along_rows ? rows : groups;
  const std::uint32_t inner = mine < count ? mine : count - 1;
  return {order.along_rows ? inner : outer, order.along_rows ? outer : inner, thread_index() % lanes, mine < count};
}

WEFT_DEVICE float* scale_at(const ScaleLayout& places, const GroupPlace& at) {
  return places.scales + (product(at.row, places.row_stride) + product(at.group, places.group_stride));
}

}  // namespace weft::cuda
