// Requirements of every backend of the device interface: handles, current state, and the words of errors.

#include <thread>

#include <gtest/gtest.h>

#include "runtime/cuda/driver.h"
#include "tests/runtime/cuda_test_device.h"

namespace weft::cuda_driver_test {

using namespace weft::cuda;

TEST(CudaDriver, SaysWhatItsDevicesAre) {
  TestDevices devices(1, 2);
  EXPECT_EQ(devices.driver().device_count(), 2);
  EXPECT_EQ(devices.driver().device_name(1), "fake-cuda:1");
  EXPECT_EQ(devices.driver().facts(1).compute_capability, 90);
  EXPECT_EQ(devices.driver().facts(1).memory_bytes, 1 << 20);
  expect_device_error([&] { devices.driver().facts(2); }, {"[fake-cuda:2]", "no such device, there are 2"});
  expect_device_error([&] { devices.driver().create_stream(-1); }, {"cuStreamCreate", "no such device"});
}

TEST(CudaDriver, RefusesWhatWasDestroyed) {
  TestDevices devices(1);
  Driver& driver = devices.driver();
  std::uint32_t* buffer = devices.buffer(1);
  const Stream stream = driver.create_stream(0);
  driver.destroy(stream);
  expect_device_error(
      [&] {
        driver.launch(stream, devices.function("mix"), {}, MixArguments{buffer, buffer, 1});
      },
      {"[fake-cuda:0] cuLaunchKernel", "its stream was destroyed"});
  expect_device_error([&] { driver.synchronize(stream); }, {"cuStreamSynchronize", "its stream was destroyed"});
  expect_device_error([&] { driver.destroy(stream); }, {"cuStreamDestroy", "its stream was destroyed"});
  expect_device_error([&] { driver.destroy(driver.default_stream(0)); }, {"its stream cannot be destroyed"});
  const Event event = driver.create_event(0);
  driver.destroy(event);
  expect_device_error([&] { driver.record(event, driver.default_stream(0)); },
                      {"cuEventRecord", "its event was destroyed"});
  const Module module = driver.load_module(0, fake_image({90}));
  const Function function = driver.find_function(module, "mix", sizeof(MixArguments));
  driver.destroy(module);
  expect_device_error(
      [&] {
        driver.launch(driver.default_stream(0), function, {}, MixArguments{buffer, buffer, 1});
      },
      {"its function was destroyed"});
  EXPECT_EQ(devices.read(buffer)[0], 1u);
}

TEST(CudaDriver, NamesWhatWasAskedAndWhatIsFree) {
  TestDevices devices(1);
  Driver& driver = devices.driver();
  const Stream stream = driver.default_stream(0);
  void* memory = driver.allocate(stream, 1 << 19);
  EXPECT_EQ(driver.memory(0).free, std::size_t{1 << 19});
  expect_device_error(
      [&] { driver.allocate(stream, (1 << 19) + 1); },
      {"[fake-cuda:0] cuMemAllocAsync: CUDA_ERROR_OUT_OF_MEMORY", "asked 524289 bytes, 524288 bytes free of 1048576"});
  try {
    driver.allocate(stream, 1 << 20);
    FAIL();
  } catch (const CudaError& error) {
    EXPECT_EQ(error.status(), Status::out_of_memory);
    EXPECT_EQ(error.exit_code(), 4);
  }
  // Running out of memory breaks nothing, and released memory can be allocated again.
  EXPECT_EQ(driver.last_error(0), "");
  driver.release(stream, memory);
  EXPECT_NE(driver.allocate(stream, 1 << 20), nullptr);
  EXPECT_EQ(driver.allocate(stream, 0), nullptr);
  driver.release(stream, nullptr);
}

TEST(CudaDriver, RefusesToReleaseWhatIsNotAllocated) {
  TestDevices devices(1, 2);
  Driver& driver = devices.driver();
  const Stream stream = driver.default_stream(0);
  std::uint32_t* buffer = devices.buffer(1);
  int on_the_host = 0;
  expect_device_error([&] { driver.release(stream, buffer + 1); }, {"cuMemFreeAsync", "nothing was allocated there"});
  expect_device_error([&] { driver.release(stream, &on_the_host); }, {"nothing was allocated there"});
  expect_device_error([&] { driver.release(stream, devices.buffer(1, 1)); }, {"not of the stream's device"});
  driver.release(stream, buffer);
  expect_device_error([&] { driver.release(stream, buffer); }, {"released before"});
}

TEST(CudaDriver, NamesWhatIsWrongWithALaunch) {
  TestDevices devices(1);
  Driver& driver = devices.driver();
  const Stream stream = driver.default_stream(0);
  const MixArguments arguments{nullptr, nullptr, 0};
  const Function function = devices.function("fail");
  expect_device_error(
      [&] {
        driver.launch(stream, function, {.threads = {257, 1, 1}}, arguments);
      },
      {"cuLaunchKernel", "kernel fail takes 1 to 256 threads", "given 257 threads"});
  expect_device_error(
      [&] {
        driver.launch(stream, function, {.blocks = {0, 1, 1}}, arguments);
      },
      {"given 1 threads, 0 x 1 x 1"});
  expect_device_error(
      [&] {
        driver.launch(stream, function, {.blocks = {1, 65536, 1}}, arguments);
      },
      {"1 x 65536 x 1 blocks"});
  expect_device_error([&] { driver.launch(stream, function, {.shared_bytes = 4}, arguments); },
                      {"0 bytes of shared memory"});
  expect_device_error([&] { driver.launch(stream, function, {}, 7); },
                      {"kernel fail takes 24 bytes of arguments", "given 4"});
  EXPECT_EQ(driver.last_error(0), "");
}

TEST(CudaDriver, NamesWhatIsWrongWithDeviceCode) {
  TestDevices devices(1);
  Driver& driver = devices.driver();
  expect_device_error(
      [&] {
        driver.load_module(0, fake_image({80, 120}));
      },
      {"[fake-cuda:0] cuModuleLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU",
       "the image is for sm_80, sm_120, the device is sm_90"});
  const std::byte garbage[3] = {};
  expect_device_error([&] { driver.load_module(0, garbage); }, {"CUDA_ERROR_INVALID_IMAGE", "asked 3 bytes"});
  expect_device_error([&] { driver.load_module(0, {}); }, {"wants an image, but is given 0 bytes"});
  const Owner module(driver, driver.load_module(0, fake_image({80, 90})));
  expect_device_error([&] { driver.find_function(*module, "mixx", sizeof(MixArguments)); },
                      {"cuModuleGetFunction mixx: CUDA_ERROR_NOT_FOUND"});
  expect_device_error([&] { driver.find_function(*module, "mix", 8); },
                      {"it takes 24 bytes of arguments, but is to be given 8"});
}

TEST(CudaDriver, TellsMemoryOfDevicesFromTheHosts) {
  TestDevices devices(1, 2);
  int on_the_host = 0;
  EXPECT_EQ(devices.driver().device_of(devices.buffer(0, 1) + 3), 1);
  EXPECT_EQ(devices.driver().device_of(devices.buffer(0, 0)), 0);
  EXPECT_EQ(devices.driver().device_of(&on_the_host), std::nullopt);
}

TEST(CudaDriver, QueuesOnlyOnTheDeviceThatIsCurrent) {
  TestDevices devices(1, 2);
  Driver& driver = devices.driver();
  const Owner stream(driver, driver.create_stream(1));
  std::uint32_t* buffer = devices.buffer(0, 1);
  const Function function = devices.function("mix", 1);
  expect_device_error(
      [&] {
        driver.launch(*stream, function, {}, MixArguments{buffer, buffer, 1});
      },
      {"[fake-cuda:1] cuLaunchKernel", "its stream is of this device, but current is fake-cuda:0"});
  expect_device_error([&] { driver.allocate(*stream, 4); }, {"current is fake-cuda:0"});
  const CurrentGuard guard(driver, *stream);
  driver.launch(*stream, function, {}, MixArguments{buffer, buffer, 1});
  expect_device_error(
      [&] {
        driver.launch(*stream, devices.function("mix", 0), {}, MixArguments{buffer, buffer, 1});
      },
      {"its function is of fake-cuda:0"});
  EXPECT_EQ(devices.read(buffer, 1)[0], 1u);
}

TEST(CudaDriver, KeepsWhatIsCurrentForEachThread) {
  TestDevices devices(1, 2);
  Driver& driver = devices.driver();
  driver.make_current(driver.create_stream(1));
  EXPECT_EQ(driver.current_device(), 1);
  int other = -1;
  std::thread([&] {
    other = driver.current_device();
    driver.synchronize(driver.create_stream(0));
  }).join();
  EXPECT_EQ(other, 0);
  EXPECT_EQ(driver.current_device(), 1);
}

TEST(CudaDriver, StartsEveryThreadOnDeviceZeroWhateverRanBefore) {
  TestDevices devices(1, 2);
  Driver& driver = devices.driver();
  // Threads one after another are given the same id.
  for (int turn = 0; turn < 4; ++turn)
    std::thread([&] {
      EXPECT_EQ(driver.current_device(), 0);
      EXPECT_EQ(driver.current_stream(1), driver.default_stream(1));
      EXPECT_NE(driver.allocate(driver.default_stream(0), 4), nullptr);
      driver.make_current(driver.create_stream(1));
    }).join();
}

TEST(CudaDriver, HasTheDefaultStreamCurrentOnceAnotherIsGone) {
  TestDevices devices(1, 2);
  Driver& driver = devices.driver();
  const Stream stream = driver.create_stream(0);
  driver.make_current(stream);
  driver.destroy(stream);
  EXPECT_EQ(driver.current_stream(0), driver.default_stream(0));
  driver.make_current(driver.create_stream(0));
  std::thread([&] { driver.reset(0); }).join();
  EXPECT_EQ(driver.current_stream(0), driver.default_stream(0));
  std::uint32_t* buffer = devices.buffer(1);
  const void* arguments[] = {buffer};
  const CurrentGuard guard(driver, arguments);
  driver.fill(guard.stream(), buffer, 0, 4);
  EXPECT_EQ(devices.read(buffer)[0], 0u);
}

TEST(CudaDriver, GivesEveryThreadADeviceAgainAfterAReset) {
  TestDevices devices(1, 2);
  Driver& driver = devices.driver();
  driver.create_stream(0);
  driver.create_stream(1);
  std::thread([&] { driver.reset(0); }).join();
  EXPECT_EQ(driver.current_device(), 0);
  EXPECT_NE(driver.allocate(driver.default_stream(0), 4), nullptr);
  // Also under a guard that began before.
  const CurrentGuard guard(driver, driver.default_stream(1));
  driver.reset(1);
  EXPECT_EQ(driver.device_of(driver.allocate(driver.default_stream(1), 4)), 1);
}

TEST(CudaDriver, AFailingKernelBreaksItsDeviceUntilThatIsReset) {
  TestDevices devices(1, 2);
  Driver& driver = devices.driver();
  const Stream stream = driver.create_stream(0);
  std::uint32_t* buffer = devices.buffer(5);
  std::uint32_t* elsewhere = devices.buffer(5, 1);
  devices.mix(stream, buffer, buffer, "fail");
  expect_device_error(
      [&] { driver.synchronize(stream); },
      {"[fake-cuda:0] cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED", "kernel fail: thread 3 divided by zero"});
  // From then on every call reports it, in any thread.
  expect_device_error([&] { driver.allocate(stream, 4); },
                      {"cuMemAllocAsync: CUDA_ERROR_LAUNCH_FAILED", "kernel fail"});
  expect_device_error([&] { driver.create_event(0); }, {"CUDA_ERROR_LAUNCH_FAILED"});
  EXPECT_NE(driver.last_error(0).find("kernel fail: thread 3"), std::string::npos);
  // Other devices go on.
  EXPECT_EQ(driver.last_error(1), "");
  devices.mix(driver.default_stream(1), elsewhere, elsewhere);
  EXPECT_EQ(devices.read(elsewhere, 1)[0], mixed(5, 5));

  driver.reset(0);
  EXPECT_EQ(driver.last_error(0), "");
  EXPECT_EQ(driver.memory(0).free, driver.memory(0).total);
  expect_device_error([&] { driver.synchronize(stream); }, {"its stream was destroyed"});
  const Module module = driver.load_module(0, fake_image({90}));
  std::uint32_t* again = devices.buffer(7);
  driver.launch(driver.default_stream(0), driver.find_function(module, "mix", sizeof(MixArguments)), {},
                MixArguments{again, again, TestDevices::kCount});
  EXPECT_EQ(devices.read(again)[3], mixed(7, 7));
}

TEST(CudaDriver, SaysThatTheProcessIsToStartAgainWhereAResetMendsNothing) {
  FakeSettings settings{.resets_mend_faults = false};
  settings.kernels.push_back(
      {.name = "fail", .argument_bytes = 4, .run = [](const FakeLaunch&) { throw std::runtime_error("it failed"); }});
  const auto driver = open_fake_device(std::move(settings));
  driver->reset(0);  // of a device that works
  const Stream stream = driver->create_stream(0);
  const Module module = driver->load_module(0, fake_image({90}));
  const CurrentGuard guard(*driver, stream);
  driver->launch(stream, driver->find_function(module, "fail", 4), {}, 7);
  expect_device_error([&] { driver->synchronize(stream); }, {"CUDA_ERROR_LAUNCH_FAILED", "it failed"});
  for (int i = 0; i < 2; ++i) {
    expect_device_error([&] { driver->reset(0); }, {"[fake-cuda:0]", "it failed", "start the process again"});
    EXPECT_NE(driver->last_error(0).find("start the process again"), std::string::npos);
    expect_device_error([&] { driver->create_stream(0); }, {"CUDA_ERROR_LAUNCH_FAILED"});
  }
}

}  // namespace weft::cuda_driver_test
