#pragma once

// The devices that --device names besides the host's processor.

#include <memory>
#include <string>
#include <vector>

#include "builtin/emulated_kernels.h"
#include "compiler/context.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/stream_device.h"
#include "tensor/device.h"

namespace weft {

// A fake device that has the emulated kernels beside those of `settings`, and 16 GiB at least. UserError for another
// device than fake-cuda:0.
std::shared_ptr<cuda::StreamDevice> open_fake_cuda(DeviceId device, cuda::FakeSettings settings);

// What kernels are asked about: its GPU, and cuBLASLt as the host stands in for it.
void describe_fake_cuda(DeviceDescription& device, const cuda::FakeSettings& settings);

// Opens it for a Context of that device, whose kernels are asked anew where its GPU is another than that of the
// default settings, which make_context describes. Where `settings` say what executes PTX (FakeSettings::read_image) row
// programs are launched there: those that an NVRTC in one of `nvrtc` compiles, and of which there are images already.
// explain says of the others why not.
void put_on_fake_cuda(Context& context, cuda::FakeSettings settings, const std::vector<std::string>& nvrtc);

// A GPU that the program has code for, and the library that multiplies there.
struct Gpu {
  std::unique_ptr<cuda::Driver> driver;
  cuda::CublasltLibrary library;
};
// DeviceError: what is missing to run on it.
Gpu open_gpu(DeviceId device);
// What kernels are asked about.
void describe_gpu(DeviceDescription& device, const Gpu& gpu);
// For a Context of that device. Row programs are made for it where NVRTC is there. No host's kernel can read its memory
// (Replay refuses a Plan that has one).
void put_on_gpu(Context& context, Gpu gpu);

}  // namespace weft
