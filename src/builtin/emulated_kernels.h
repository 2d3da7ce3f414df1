#pragma once

// The kernels of kernels/cuda/device, as kernels of a fake device.

#include <vector>

#include "emulator/emulator.h"
#include "runtime/cuda/fake_device.h"

namespace weft {

// Each launch runs in its own emulator and may access only the device's memory.
std::vector<cuda::FakeKernel> emulated_kernels_of_device(cuda::EmulatorSettings settings = {});

}  // namespace weft
