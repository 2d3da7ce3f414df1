#include "tests/cuda/emulated_device.h"

#include "builtin/cuda_device.h"

namespace weft {

std::unique_ptr<cuda::Driver> open_emulated_device(std::uint64_t seed) {
  return cuda::open_fake_device({.seed = seed,
                                 .memory_bytes = std::size_t{1} << 24,
                                 .kernels = emulated_kernels_of_device({.order = cuda::ThreadOrder::random})});
}

}  // namespace weft
