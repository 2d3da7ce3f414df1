#pragma once

// What every launch of kernels/cuda has: its shape, and the limit of sizes.

#include <cstdint>

#include "kernels/launch_shape.h"

namespace weft::cuda {

// The limit of rows, columns, strides and the total number of threads: kernels count them in 32 bits.
inline constexpr std::int64_t kSideLimit = std::int64_t{1} << 31;

}  // namespace weft::cuda
