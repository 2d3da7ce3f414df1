#pragma once

// How many threads run a kernel of a device.

#include <cstdint>

namespace weft {

struct LaunchShape {
  std::uint32_t blocks = 1;      // along x
  std::uint32_t block_rows = 1;  // along y
  std::uint32_t threads = 1;     // of a block; a multiple of 32, except for the tree designs
};

}  // namespace weft
