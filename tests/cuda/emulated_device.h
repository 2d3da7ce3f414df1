#pragma once

// A fake device whose kernels are those of kernels/cuda/device, run by the emulator in the device's memory.

#include <memory>

#include "runtime/cuda/fake_device.h"

namespace weft {

std::unique_ptr<cuda::Driver> open_emulated_device(std::uint64_t seed);

}  // namespace weft
