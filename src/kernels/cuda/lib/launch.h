#pragma once

// What host code says to run a kernel: its name, how many threads, and its arguments, which are one plain struct.

#include <cstdint>

#include "kernels/launch_shape.h"

namespace weft::cuda {

using weft::LaunchShape;

// What rows, columns, strides and threads in all stay below: kernels count them in 32 bits.
inline constexpr std::int64_t kSideLimit = std::int64_t{1} << 31;

// A kernel compiled for the host, for the emulator.
struct EmulatedKernel {
  const char* name;
  void (*body)(const void* arguments);
  std::uint32_t most_threads;  // of a block
  std::uint32_t argument_bytes;
};

}  // namespace weft::cuda
