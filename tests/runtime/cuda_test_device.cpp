#include "tests/runtime/cuda_test_device.h"

#include <stdexcept>

#include "tests/without_check.h"

namespace weft {
namespace {

[[maybe_unused]] const bool kChecksAreLeftOut = leave_checks_out();

void mix_elements(std::uint32_t* to, const std::uint32_t* from, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) to[i] = mixed(to[i], from[i]);
}

void run_mix(const cuda::FakeLaunch& launch) {
  const auto& [to, from, count] = launch.arguments<MixArguments>();
  mix_elements(launch.elements(to, count).data(), launch.elements(from, count).data(), count);
}

void run_mix_unchecked(const cuda::FakeLaunch& launch) {
  const auto& [to, from, count] = launch.arguments<MixArguments>();
  mix_elements(to, from, count);
}

void run_fail(const cuda::FakeLaunch&) { throw std::runtime_error("thread 3 divided by zero"); }

}  // namespace

cuda::FakeSettings test_device_settings(std::uint64_t seed, int devices) {
  return {.devices = devices,
          .seed = seed,
          .memory_bytes = 1 << 20,
          .is_late = !is_left_out("order"),
          .checks_captures = !is_left_out("captures"),
          .kernels = {{"mix", sizeof(MixArguments), run_mix},
                      {"mix_unchecked", sizeof(MixArguments), run_mix_unchecked},
                      {"fail", sizeof(MixArguments), run_fail, 256}}};
}

TestDevices::TestDevices(cuda::FakeSettings settings) {
  const int devices = settings.devices;
  std::vector<std::string> kernels;
  for (const cuda::FakeKernel& kernel : settings.kernels)
    if (kernel.argument_bytes == sizeof(MixArguments)) kernels.push_back(kernel.name);
  driver_ = cuda::open_fake_device(std::move(settings));
  for (int device = 0; device < devices; ++device) {
    const cuda::Module module = driver_->load_module(device, cuda::fake_image({90}));
    for (const std::string& name : kernels)
      functions_[{device, name}] = driver_->find_function(module, name, sizeof(MixArguments));
  }
}

cuda::Function TestDevices::function(const std::string& name, int device) { return functions_.at({device, name}); }

std::uint32_t* TestDevices::buffer(std::uint32_t value, int device) {
  const cuda::CurrentGuard guard(*driver_, driver_->default_stream(device));
  const std::vector<std::uint32_t> values(kCount, value);
  void* memory = driver_->allocate(guard.stream(), kBytes);
  driver_->copy(guard.stream(), memory, values.data(), kBytes);
  driver_->synchronize_device(device);
  return static_cast<std::uint32_t*>(memory);
}

void TestDevices::mix(cuda::Stream stream, std::uint32_t* to, const std::uint32_t* from, const std::string& name) {
  const cuda::CurrentGuard guard(*driver_, stream);
  driver_->launch(stream, function(name, stream.device), {.threads = {32, 1, 1}}, MixArguments{to, from, kCount});
}

std::vector<std::uint32_t> TestDevices::read(const std::uint32_t* buffer, int device) {
  const cuda::CurrentGuard guard(*driver_, driver_->default_stream(device));
  driver_->synchronize_device(device);
  std::vector<std::uint32_t> values(kCount);
  driver_->copy(guard.stream(), values.data(), buffer, kBytes);
  driver_->synchronize_device(device);
  return values;
}

bool is_caught(int seeds, const std::function<bool(std::uint64_t seed)>& gives_right_result) {
  for (int seed = 1; seed <= seeds; ++seed) {
    try {
      if (!gives_right_result(static_cast<std::uint64_t>(seed))) return true;
    } catch (const DeviceError&) {
      return true;
    }
  }
  return false;
}

}  // namespace weft
