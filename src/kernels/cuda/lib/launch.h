#pragma once

// What the host needs to run a kernel: its name, the number of threads, and its arguments, which are one plain struct.

#include <cstdint>

#include "kernels/launch_shape.h"

namespace weft::cuda {

using weft::LaunchShape;

// The limit of rows, columns, strides and the total number of threads: kernels count them in 32 bits.
inline constexpr std::int64_t kSideLimit = std::int64_t{1} << 31;

// A kernel compiled for the host, for the emulator.
struct EmulatedKernel {
  const char* name;
  void (*body)(const void* arguments);
  std::uint32_t most_threads;  // of a block
  std::uint32_t argument_bytes;
};

}  // namespace weft::cuda
