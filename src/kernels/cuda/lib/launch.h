#pragma once

// What host code says to run a kernel: its name, how many threads, and its arguments, which are one plain struct.

#include <cstdint>

namespace weft::cuda {

struct LaunchShape {
  std::uint32_t blocks = 1;      // along x
  std::uint32_t block_rows = 1;  // along y
  std::uint32_t threads = 1;     // of a block; a multiple of 32 but for the tree designs
};

// A kernel compiled for the host, for the emulator.
struct EmulatedKernel {
  const char* name;
  void (*body)(const void* arguments);
  std::uint32_t most_threads;  // of a block
  std::uint32_t argument_bytes;
};

}  // namespace weft::cuda
