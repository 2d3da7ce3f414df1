#pragma once

// Host code with captures, shared by the tests of captures and graphs.

#include <functional>
#include <string>

#include "tests/runtime/cuda_test_device.h"

namespace weft {

// Two streams of one device, an event, and buffers of ones and twos.
struct CaptureHost {
  explicit CaptureHost(std::uint64_t seed = 1, int device_count = 1) : devices(seed, device_count) {}
  TestDevices devices;
  cuda::Driver& driver = devices.driver();
  const cuda::Stream stream = driver.create_stream(0), other = driver.create_stream(0);
  const cuda::Event fork = driver.create_event(0), join = driver.create_event(0);
  std::uint32_t* a = devices.buffer(1);
  std::uint32_t* b = devices.buffer(2);

  void fork_to_other() {
    driver.record(fork, stream);
    driver.wait(other, fork);
  }
  void join_other() {
    driver.record(join, other);
    driver.wait(stream, join);
  }
  cuda::CapturedGraph capture(const std::function<void()>& queue) {
    driver.begin_capture(stream);
    queue();
    return driver.end_capture(stream);
  }
  // The error that ends a capture in which `queue` did something; it itself may throw, too.
  std::string ending(const std::function<void()>& queue) {
    driver.begin_capture(stream);
    try {
      queue();
    } catch (const cuda::CudaError& error) {
      thrown = error.what();
    }
    return message_of<DeviceError>([&] { driver.destroy(driver.end_capture(stream)); });
  }
  std::string thrown;
};

}  // namespace weft
