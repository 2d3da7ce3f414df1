#pragma once

// The number of blocks for kernels that keep a group in neighbouring lanes, and their order.

#include <cstdint>

#include "kernels/cuda/lib/arguments.h"
#include "kernels/cuda/lib/launch.h"

namespace weft::cuda {

Divisor divisor_of(std::uint32_t divisor);  // at least 1, below 2^31

struct GroupCounts {
  std::int64_t rows = 0;
  std::int64_t groups = 0;  // of a row
  std::int64_t group_size = 128;
};

// Neighbouring blocks have scales that are near each other in memory: `order` says whether these are of the groups of
// one row, or of one group of all rows. Throws UserError with `kernel` for more blocks than a launch can have.
LaunchShape plan_groups(const char* kernel, const GroupCounts& counts, const ScaleLayout& places, GroupOrder& order);

// Throws UserError with `kernel` for no rows or columns, because nothing can be launched for them, and for 2^31 and
// more.
void check_sides(const char* kernel, std::int64_t rows, std::int64_t columns);

// Throws UserError unless the address is aligned for vectors of `bytes` bytes.
void check_aligned(const char* kernel, const char* what, const void* address, std::uintptr_t bytes);

}  // namespace weft::cuda
