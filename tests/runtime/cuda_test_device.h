#pragma once

// Fake devices with a few kernels, for tests of host code.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/cuda/current_guard.h"
#include "runtime/cuda/fake_device.h"
#include "tests/thrown_message.h"

namespace weft {

// The function that a step of the kernel mix applies to an element. It always depends on the old value of `to`, so that
// a changed order of two steps changes the end result.
inline std::uint32_t mixed(std::uint32_t to, std::uint32_t from) { return to * 3 + from + 1; }

struct MixArguments {
  std::uint32_t* to;
  const std::uint32_t* from;
  std::uint32_t count;
};

// The kernels: mix; mix_unchecked, which does not check its pointers; and fail, which throws.
cuda::FakeSettings test_device_settings(std::uint64_t seed = 1, int devices = 1);

class TestDevices {
 public:
  explicit TestDevices(cuda::FakeSettings settings);
  explicit TestDevices(std::uint64_t seed, int devices = 1) : TestDevices(test_device_settings(seed, devices)) {}

  cuda::Driver& driver() { return *driver_; }
  cuda::Function function(const std::string& name, int device = 0);

  static constexpr std::uint32_t kCount = 24;  // elements of a buffer
  static constexpr std::size_t kBytes = kCount * sizeof(std::uint32_t);
  // A buffer with `value` everywhere, ready for every stream.
  std::uint32_t* buffer(std::uint32_t value, int device = 0);
  // Queues to = mix(to, from); the device of the stream is current afterwards only if it was before.
  void mix(cuda::Stream stream, std::uint32_t* to, const std::uint32_t* from, const std::string& name = "mix");
  // The data there after all work of the device.
  std::vector<std::uint32_t> read(const std::uint32_t* buffer, int device = 0);

 private:
  std::unique_ptr<cuda::Driver> driver_;
  std::map<std::pair<int, std::string>, cuda::Function> functions_;  // by device and name
};

// Fails the running test unless the call throws a DeviceError with all these words.
template <class Call>
void expect_device_error(Call&& call, std::initializer_list<const char*> words) {
  const std::string message = message_of<DeviceError>(std::forward<Call>(call));
  EXPECT_NE(message, "") << "nothing was thrown";
  for (const char* word : words) EXPECT_NE(message.find(word), std::string::npos) << word << " in: " << message;
}

// Whether for at least one of `seeds` seeds a DeviceError was thrown or the result was reported as wrong.
bool is_caught(int seeds, const std::function<bool(std::uint64_t seed)>& gives_right_result);

}  // namespace weft
