#include "kernels/cuda/lib/group_launch.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "kernels/cuda/lib/block_sizes.h"

namespace weft::cuda {

Divisor divisor_of(std::uint32_t divisor) {
  CHECK(divisor >= 1 && divisor < 1u << 31, "[cuda] divides by {}", divisor);
  const auto shift = static_cast<std::uint32_t>(std::bit_width(divisor - 1));
  const std::uint64_t power = std::uint64_t{1} << (31 + shift);
  return {divisor, static_cast<std::uint32_t>((power + divisor - 1) / divisor), shift};
}

LaunchShape plan_groups(const char* kernel, const GroupCounts& counts, const ScaleLayout& places, GroupOrder& order) {
  order.along_rows = places.row_stride < places.group_stride;
  const std::int64_t inner = order.along_rows ? counts.rows : counts.groups;
  const std::int64_t outer = order.along_rows ? counts.groups : counts.rows;
  const std::int64_t of_block = kGroupThreads / (counts.group_size / kElementsOfLane);
  const std::int64_t slices = (inner + of_block - 1) / of_block;
  USER_CHECK(slices * outer < std::int64_t{1} << 31,
             "[{}] {} groups in each of {} rows would be {} blocks; a launch has at most {}", kernel, counts.groups,
             counts.rows, slices * outer, (std::int64_t{1} << 31) - 1);
  order.slices = divisor_of(static_cast<std::uint32_t>(slices));
  return {.blocks = static_cast<std::uint32_t>(slices * outer), .threads = kGroupThreads};
}

void check_sides(const char* kernel, std::int64_t rows, std::int64_t columns) {
  USER_CHECK(std::min(rows, columns) > 0 && std::max(rows, columns) < kSideLimit,
             "[{}] x must have 1 to 2^31 - 1 rows and columns, but has {} and {}", kernel, rows, columns);
}

void check_aligned(const char* kernel, const char* what, const void* address, std::uintptr_t bytes) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  USER_CHECK(number != 0 && number % bytes == 0, "[{}] {} must be at a multiple of {} bytes, but is at {:#x}", kernel,
             what, bytes, number);
}

}  // namespace weft::cuda
