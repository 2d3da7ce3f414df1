// The driver's interface for the host's side of a stream: functions in its order, memory that both use, and times
// between events.

#include <thread>

#include <gtest/gtest.h>

#include "tests/runtime/cuda_capture_host.h"

namespace weft::cuda_host_work_test {

using namespace weft::cuda;

// Host functions that mix as the kernel does.
struct HostMix {
  std::uint32_t* to;
  const std::uint32_t* from;
  static void run(void* data) {
    const auto& mix = *static_cast<const HostMix*>(data);
    for (std::uint32_t i = 0; i < TestDevices::kCount; ++i) mix.to[i] = mixed(mix.to[i], mix.from[i]);
  }
};

std::uint32_t mixed_by_turns(std::uint32_t a, std::uint32_t b) {
  a = mixed(a, b);
  b = mixed(b, a);
  return mixed(a, b);
}

TEST(CudaHostWork, RunsInTheOrderOfItsStream) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CaptureHost host(seed);
    HostMix back{host.b, host.a};
    const CurrentGuard guard(host.driver, host.stream);
    host.devices.mix(host.stream, host.a, host.b);
    host.driver.launch_host(host.stream, &HostMix::run, &back);
    host.devices.mix(host.stream, host.a, host.b);
    EXPECT_EQ(host.devices.read(host.a), std::vector(TestDevices::kCount, mixed_by_turns(1, 2))) << seed;
  }
}

TEST(CudaHostWork, WithoutAnEventIsWrongForSomeOrder) {
  EXPECT_TRUE(is_caught(40, [](std::uint64_t seed) {
    CaptureHost host(seed);
    HostMix back{host.b, host.a};
    host.devices.mix(host.stream, host.a, host.b);
    const CurrentGuard guard(host.driver, host.other);
    host.driver.launch_host(host.other, &HostMix::run, &back);
    return host.devices.read(host.b)[0] == mixed(2, mixed(1, 2));
  }));
}

TEST(CudaHostWork, IsCapturedAndRunsAtEachLaunch) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CaptureHost host(seed);
    HostMix back{host.b, host.a}, other{host.a, host.a};
    const CurrentGuard guard(host.driver, host.stream);
    const auto capture = [&](HostMix& mix) {
      return Owner(host.driver, host.capture([&] {
        host.devices.mix(host.stream, host.a, host.b);
        host.driver.launch_host(host.stream, &HostMix::run, &mix);
      }));
    };
    const auto graph = capture(back), updated = capture(other);
    EXPECT_EQ(host.driver.node_count(*graph), 2u);
    EXPECT_EQ(host.devices.read(host.b)[0], 2u);
    const Owner executable(host.driver, host.driver.instantiate(*graph));
    std::uint32_t a = 1, b = 2;
    for (int launch = 0; launch < 2; ++launch) {
      host.driver.launch(host.stream, *executable);
      a = mixed(a, b);
      b = mixed(b, a);
    }
    EXPECT_EQ(host.devices.read(host.b)[0], b);
    EXPECT_TRUE(bool(host.driver.update(*executable, *updated)));
    host.driver.launch(host.stream, *executable);
    a = mixed(a, b);
    EXPECT_EQ(host.devices.read(host.a)[0], mixed(a, a));
    EXPECT_EQ(host.devices.read(host.b)[0], b);
  }
}

TEST(CudaHostWork, MayNotCallTheDriver) {
  CaptureHost host;
  const CurrentGuard guard(host.driver, host.stream);
  const auto call = [](void* data) { static_cast<CaptureHost*>(data)->driver.memory(0); };
  host.driver.launch_host(host.stream, call, &host);
  expect_device_error([&] { host.driver.synchronize(host.stream); },
                      {"cuStreamSynchronize", "a host function called the driver"});
}

TEST(CudaHostWork, SharesMemoryWithKernels) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CaptureHost host(seed);
    auto* shared = static_cast<std::uint32_t*>(host.driver.allocate_host(0, TestDevices::kBytes));
    std::fill_n(shared, TestDevices::kCount, 5u);
    host.devices.mix(host.stream, host.a, shared);
    host.driver.synchronize(host.stream);
    EXPECT_EQ(host.devices.read(host.a)[0], mixed(1, 5));
    EXPECT_EQ(host.driver.device_of(shared), 0);
    EXPECT_EQ(host.driver.memory(0).free, (std::size_t{1} << 20) - 2 * TestDevices::kBytes);
    host.driver.release_host(0, shared);
    expect_device_error([&] { host.driver.release_host(0, shared); }, {"cuMemFreeHost", "released before"});
    host.devices.mix(host.stream, host.a, shared);
    expect_device_error([&] { host.driver.synchronize(host.stream); }, {"used after they were released"});
  }
}

TEST(CudaHostWork, TakesNoMemoryOfTheHostInACapture) {
  CaptureHost host;
  const CurrentGuard guard(host.driver, host.stream);
  EXPECT_NE(host.ending([&] { host.driver.allocate_host(0, 8); }), "");
  EXPECT_NE(host.thrown.find("cuMemHostAlloc"), std::string::npos) << host.thrown;
}

TEST(CudaHostWork, MeasuresBetweenTimedEventsThatWereReached) {
  CaptureHost host;
  Driver& driver = host.driver;
  const CurrentGuard guard(driver, host.stream);
  const Event begin = driver.create_event(0, true), end = driver.create_event(0, true);
  expect_device_error([&] { driver.milliseconds_between(begin, end); },
                      {"cuEventElapsedTime", "an event was never recorded"});
  driver.record(begin, host.stream);
  for (int i = 0; i < 4; ++i) host.devices.mix(host.stream, host.a, host.b);
  driver.record(end, host.stream);
  driver.synchronize(end);
  // Four kernels and the end itself: other work between them adds to it.
  EXPECT_GE(driver.milliseconds_between(begin, end), 5e-3f);
  EXPECT_FLOAT_EQ(driver.milliseconds_between(begin, begin), 0);
  driver.record(host.fork, host.stream);
  driver.synchronize(host.fork);
  expect_device_error([&] { driver.milliseconds_between(begin, host.fork); }, {"an event was made without timing"});
}

// A later thread may have the id of an ended one, and is another thread nevertheless.
TEST(CudaHostWork, KnowsTheThreadThatBeganACapture) {
  CaptureHost host;
  std::string message;
  std::thread([&] {
    const CurrentGuard guard(host.driver, host.stream);
    host.driver.begin_capture(host.stream);
  }).join();
  for (int i = 0; i < 8 && message.empty(); ++i)
    std::thread([&] {
      const CurrentGuard guard(host.driver, host.stream);
      message = message_of<DeviceError>([&] { host.driver.end_capture(host.stream); });
    }).join();
  EXPECT_NE(message.find("CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"), std::string::npos) << message;
}

}  // namespace weft::cuda_host_work_test
