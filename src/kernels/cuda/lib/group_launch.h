#pragma once

// How many blocks it takes for kernels that keep a group in neighbouring lanes, and how they stand.

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

// Along the rows of a group number where its scales lie closer together than those of a row. UserError, naming
// `kernel`, for more blocks than a launch has.
LaunchShape plan_groups(const char* kernel, const GroupCounts& counts, const ScalePlaces& places, GroupOrder& order);

// UserError, naming `kernel`, for no rows or columns, which nothing can be launched for, and for 2^31 and more.
void check_sides(const char* kernel, std::int64_t rows, std::int64_t columns);

// What is wrong with it as an address of vectors of so many bytes: UserError.
void check_aligned(const char* kernel, const char* what, const void* address, std::uintptr_t bytes);

}  // namespace weft::cuda
