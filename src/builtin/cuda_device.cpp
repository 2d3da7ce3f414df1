#include "builtin/cuda_device.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/functions/device_rows.h"
#include "kernels/cuda/code/device_code.h"
#include "runtime/cuda/cublaslt_host.h"
#include "runtime/cuda/driver_library.h"

namespace weft {
namespace {

void add_products(cuda::StreamDevice& device,
                  std::function<cuda::CublasltLibrary(cuda::Driver&, cuda::Stream)> library) {
  device.add_library(kLibraryProduct, [library = std::move(library)](cuda::Driver& driver, cuda::Stream stream) {
    return std::make_unique<cuda::CublasltProducts>(driver, stream, library(driver, stream));
  });
}

}  // namespace

std::shared_ptr<cuda::StreamDevice> open_fake_cuda(DeviceId device, cuda::FakeSettings settings) {
  USER_CHECK(device == DeviceId({DeviceType::fake_cuda, 0}),
             "[--device] there is one fake device, fake-cuda:0, but is {}", device_text(device));
  constexpr std::size_t kAtLeast = std::size_t{16} << 30;  // nominal only: the actual memory is the host's
  settings.memory_bytes = std::max(settings.memory_bytes, kAtLeast);
  for (cuda::FakeKernel& kernel : emulated_kernels_of_device()) settings.kernels.push_back(std::move(kernel));
  settings.kernels.push_back(cuda::host_product_kernel());
  const int capability = settings.compute_capability;
  const std::vector<std::byte> image = cuda::fake_image({capability});
  const std::span<const std::byte> images[] = {image};
  auto opened = std::make_shared<cuda::StreamDevice>(cuda::open_fake_device(std::move(settings)), device.index, images);
  add_products(*opened,
               [](cuda::Driver& driver, cuda::Stream stream) { return cuda::cublaslt_on_host(driver, stream); });
  return opened;
}

void describe_fake_cuda(DeviceDescription& device, const cuda::FakeSettings& settings) {
  device.compute_capability = settings.compute_capability;
  device.multiprocessors = settings.multiprocessors;
  device.cublaslt = static_cast<int>(cuda::kStandInVersion);
}

void put_on_fake_cuda(Context& context, cuda::FakeSettings settings, const std::vector<std::string>& nvrtc) {
  std::shared_ptr<const DeviceRows> rows;
  if (settings.read_image)
    rows = std::make_shared<const DeviceRows>(nvrtc, settings.compute_capability, cuda::NvrtcCode::ptx);
  if (context.device.compute_capability != settings.compute_capability ||
      context.device.multiprocessors != settings.multiprocessors) {
    describe_fake_cuda(context.device, settings);
    context.kernels.prepare(context.device);
  }
  context.stream_device = open_fake_cuda(context.device.id, std::move(settings));
  context.generated->make_for_device(std::move(rows), "a fake device executes no PTX");
}

Gpu open_gpu(DeviceId device) {
  std::string problem;
  std::unique_ptr<cuda::Driver> driver = cuda::open_cuda(problem);
  if (driver == nullptr) fail_device("[--device] {} cannot be used: {}", device_text(device), problem);
  if (device.index >= driver->device_count())
    fail_device("[--device] {} is not there: the CUDA driver has {} devices", device_text(device),
                driver->device_count());
  const cuda::DeviceFacts& facts = driver->facts(device.index);
  if (const Verdict code = cuda::has_device_code(facts.compute_capability); !code)
    fail_device("[--device] {} ({}) cannot be used: {}", device_text(device), facts.name, code.reason());
  if (const Verdict code = cuda::driver_reads_device_code(facts.driver_version); !code)
    fail_device("[--device] {} ({}) cannot be used: {}", device_text(device), facts.name, code.reason());
  auto library = cuda::open_cublaslt(cuda::cublaslt_places(process_environment()), facts.driver_version, problem);
  if (!library) fail_device("[--device] {} ({}) cannot be used: {}", device_text(device), facts.name, problem);
  return {std::move(driver), std::move(*library)};
}

void describe_gpu(DeviceDescription& device, const Gpu& gpu) {
  const cuda::DeviceFacts& facts = gpu.driver->facts(device.id.index);
  device.compute_capability = facts.compute_capability;
  device.multiprocessors = facts.multiprocessors;
  device.cublaslt = static_cast<int>(gpu.library.version);
}

void put_on_gpu(Context& context, Gpu gpu) {
  const DeviceDescription& device = context.device;
  std::vector<std::span<const std::byte>> images;
  for (const cuda::DeviceCode& code : cuda::device_code()) images.push_back(code.image);
  context.stream_device = std::make_shared<cuda::StreamDevice>(std::move(gpu.driver), device.id.index, images);
  add_products(*context.stream_device,
               [library = std::move(gpu.library)](cuda::Driver&, cuda::Stream) { return library; });
  context.generated->make_for_device(
      std::make_shared<const DeviceRows>(cuda::nvrtc_places(process_environment()), device.compute_capability,
                                         cuda::NvrtcCode::machine_code),
      "");
}

}  // namespace weft
