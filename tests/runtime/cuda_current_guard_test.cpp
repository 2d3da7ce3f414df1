// Launches go to the device and stream of their arguments, and the previous current device is restored.

#include <gtest/gtest.h>

#include "runtime/cuda/current_guard.h"
#include "tests/runtime/cuda_test_device.h"

namespace weft::cuda_current_guard_test {

using namespace weft::cuda;

class CudaCurrentGuard : public testing::Test {
 protected:
  // Whether device 0 with stream_[0] is current, and stream_[1] on device 1.
  void expect_as_before() {
    EXPECT_EQ(driver_.current_device(), 0);
    EXPECT_EQ(driver_.current_stream(0), stream_[0]);
    EXPECT_EQ(driver_.current_stream(1), stream_[1]);
  }
  void SetUp() override {
    driver_.make_current(stream_[1]);
    driver_.make_current(stream_[0]);
    expect_as_before();
  }

  TestDevices devices_{1, 2};
  Driver& driver_ = devices_.driver();
  const Stream stream_[2] = {driver_.create_stream(0), driver_.create_stream(1)};
};

TEST_F(CudaCurrentGuard, MakesAStreamAndItsDeviceCurrent) {
  const Stream other = driver_.create_stream(1);
  {
    const CurrentGuard guard(driver_, other);
    EXPECT_EQ(driver_.current_device(), 1);
    EXPECT_EQ(driver_.current_stream(1), other);
    EXPECT_EQ(driver_.current_stream(0), stream_[0]);
    {
      const CurrentGuard inner(driver_, driver_.default_stream(0));
      EXPECT_EQ(driver_.current_device(), 0);
      EXPECT_EQ(driver_.current_stream(0), driver_.default_stream(0));
    }
    EXPECT_EQ(driver_.current_device(), 1);
    EXPECT_EQ(driver_.current_stream(1), other);
    // The backend's own state followed: new objects belong to that device.
    void* memory = driver_.allocate(other, 4);
    EXPECT_EQ(driver_.device_of(memory), 1);
  }
  expect_as_before();
}

TEST_F(CudaCurrentGuard, RestoresBothWhenSomethingThrows) {
  const Stream other = driver_.create_stream(1);
  EXPECT_THROW(
      {
        const CurrentGuard guard(driver_, other);
        driver_.allocate(other, std::size_t{1} << 40);
      },
      CudaError);
  expect_as_before();
  EXPECT_EQ(driver_.device_of(driver_.allocate(stream_[0], 4)), 0);
  // Also if the device failed meanwhile, or the current stream was destroyed.
  std::uint32_t* buffer = devices_.buffer(1, 1);
  EXPECT_THROW(
      {
        const CurrentGuard guard(driver_, other);
        devices_.mix(other, buffer, buffer, "fail");
        driver_.synchronize(other);
      },
      CudaError);
  expect_as_before();
}

TEST_F(CudaCurrentGuard, FindsTheDeviceOfArguments) {
  std::uint32_t* first = devices_.buffer(1, 1);
  std::uint32_t* second = devices_.buffer(2, 1);
  {
    const void* arguments[] = {first, nullptr, second};
    const CurrentGuard guard(driver_, arguments);
    EXPECT_EQ(driver_.current_device(), 1);
    EXPECT_EQ(guard.stream(), stream_[1]);
    devices_.mix(guard.stream(), first, second);
  }
  expect_as_before();
  EXPECT_EQ(devices_.read(first, 1)[0], mixed(1, 2));
}

TEST_F(CudaCurrentGuard, RefusesArgumentsThatAreNotOfOneDevice) {
  int on_the_host = 0;
  const auto message = [&](std::initializer_list<const void*> arguments) {
    return message_of<DeviceError>([&] { CurrentGuard(driver_, std::span(arguments.begin(), arguments.size())); });
  };
  EXPECT_EQ(message({devices_.buffer(1, 0), devices_.buffer(1, 1)}),
            "[launch] arguments must be of one device, but are of fake-cuda:0 and fake-cuda:1");
  EXPECT_EQ(message({devices_.buffer(1, 1), &on_the_host}),
            "[launch] argument 1 must be in a device's memory, but is in the host's");
  EXPECT_EQ(message({nullptr}), "[launch] arguments must be of a device, but none is in memory");
  EXPECT_EQ(message_of<DeviceError>([&] {
              CurrentGuard(driver_, Stream{1, 99});
            }),
            "[fake-cuda:1] make_current: its stream was destroyed, or never made");
  expect_as_before();
}

}  // namespace weft::cuda_current_guard_test
