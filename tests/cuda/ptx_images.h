#pragma once

// PTX that NVRTC made, on a fake device: the interpreter executes it.

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/cuda/fake_device.h"

namespace weft {

// FakeSettings::read_image. Each launch may touch the device's memory and no other.
cuda::FakeImage kernels_of_ptx(std::span<const std::byte> image);

}  // namespace weft
