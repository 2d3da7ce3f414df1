#pragma once

// The devices other than the host's processor that --device can name.

#include <memory>
#include <string>
#include <vector>

#include "builtin/emulated_kernels.h"
#include "compiler/context.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/stream_device.h"
#include "tensor/device.h"

namespace weft {

// A fake device with the emulated kernels in addition to those of `settings`, and with at least 16 GiB. UserError for
// any device but fake-cuda:0.
std::shared_ptr<cuda::StreamDevice> open_fake_cuda(DeviceId device, cuda::FakeSettings settings);

// Describes the device to kernels: its GPU, and cuBLASLt as emulated on the host.
void describe_fake_cuda(DeviceDescription& device, const cuda::FakeSettings& settings);

// Opens the fake device for a Context of that device. make_context describes the GPU of the default settings; if
// `settings` have another GPU, the kernels are asked again. If `settings` name something that executes PTX
// (FakeSettings::read_image), row programs are launched on it: those that an NVRTC in one of the `nvrtc` paths
// compiles, and those that already have images. For all others explain reports the reason.
void put_on_fake_cuda(Context& context, cuda::FakeSettings settings, const std::vector<std::string>& nvrtc);

// A GPU that the program has code for, and its library for matrix products.
struct Gpu {
  std::unique_ptr<cuda::Driver> driver;
  cuda::CublasltLibrary library;
};
// DeviceError that says what is missing to run on it.
Gpu open_gpu(DeviceId device);
// Describes the GPU to kernels.
void describe_gpu(DeviceDescription& device, const Gpu& gpu);
// Puts a Context of that device on the GPU. Row programs are compiled for it if NVRTC is available. Kernels of the host
// cannot read its memory (Replay refuses a Plan with such a kernel).
void put_on_gpu(Context& context, Gpu gpu);

}  // namespace weft
