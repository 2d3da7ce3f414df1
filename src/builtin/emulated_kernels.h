#pragma once

// The kernels of kernels/cuda/device as those of a fake device.

#include <vector>

#include "kernels/cuda/emulator/emulator.h"
#include "runtime/cuda/fake_device.h"

namespace weft {

// Each launch runs in an emulator of its own, and may touch the device's memory and no other.
std::vector<cuda::FakeKernel> emulated_kernels_of_device(cuda::EmulatorSettings settings = {});

}  // namespace weft
