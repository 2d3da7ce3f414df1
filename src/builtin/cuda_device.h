#pragma once

// The devices that --device names besides the host's processor.

#include <memory>

#include "builtin/emulated_kernels.h"
#include "runtime/cuda/stream_device.h"
#include "tensor/device.h"

namespace weft {

// A fake device that has the emulated kernels beside those of `settings`, and 16 GiB at least. UserError for another
// device than fake-cuda:0.
std::shared_ptr<cuda::StreamDevice> open_fake_cuda(DeviceId device, cuda::FakeSettings settings);

// DeviceError: what is missing to run on this GPU.
[[noreturn]] void refuse_cuda(DeviceId device);

}  // namespace weft
