#pragma once

// A kernel compiled for the host, for the emulator.

#include <cstdint>

namespace weft::cuda {

struct EmulatedKernel {
  const char* name;
  void (*body)(const void* arguments);  // of one thread; the arguments are one plain struct
  std::uint32_t most_threads;           // of a block
  std::uint32_t argument_bytes;
};

}  // namespace weft::cuda
