#include "builtin/cuda_device.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/cuda/code/device_code.h"
#include "runtime/cuda/driver_library.h"

namespace weft {

std::shared_ptr<cuda::StreamDevice> open_fake_cuda(DeviceId device, cuda::FakeSettings settings) {
  USER_CHECK(device == DeviceId({DeviceType::fake_cuda, 0}),
             "[--device] there is one fake device, fake-cuda:0, but is {}", device_text(device));
  constexpr std::size_t kAtLeast = std::size_t{16} << 30;  // what there is of it is the host's
  settings.memory_bytes = std::max(settings.memory_bytes, kAtLeast);
  for (cuda::FakeKernel& kernel : emulated_kernels_of_device()) settings.kernels.push_back(std::move(kernel));
  const int capability = settings.compute_capability;
  const std::vector<std::byte> image = cuda::fake_image({capability});
  const std::span<const std::byte> images[] = {image};
  return std::make_shared<cuda::StreamDevice>(cuda::open_fake_device(std::move(settings)), device.index, images);
}

void refuse_cuda(DeviceId device) {
  std::string problem;
  const auto driver = cuda::open_cuda(problem);
  if (driver == nullptr) fail_device("[--device] {} cannot be used: {}", device_text(device), problem);
  if (device.index >= driver->device_count())
    fail_device("[--device] {} is not there: the CUDA driver has {} devices", device_text(device),
                driver->device_count());
  const cuda::DeviceFacts& facts = driver->facts(device.index);
  if (const Verdict code = cuda::has_device_code(facts.compute_capability); !code)
    fail_device("[--device] {} ({}) cannot be used: {}", device_text(device), facts.name, code.reason());
  fail_device(
      "[--device] {} ({}) cannot run a model yet: there are no products for it, and what the host would compute in "
      "their place cannot read its memory; wanted cpu or fake-cuda",
      device_text(device), facts.name);
}

}  // namespace weft
