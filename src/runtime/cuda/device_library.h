#pragma once

// A library that queues its own work on a device's stream (LaunchQueue::call_library).

#include <cstddef>
#include <span>

#include "runtime/cuda/driver.h"

namespace weft::cuda {

class DeviceLibrary {
 public:
  virtual ~DeviceLibrary() = default;
  // Prepares what a call with such arguments needs: descriptions, memory, code. Not in a capture. DeviceError where the
  // library refuses the call.
  virtual void prepare(Stream stream, std::span<const std::byte> arguments) = 0;
  // Prepared calls that were not made yet will not be made.
  virtual void expect_no_more() noexcept = 0;
  // Queues the call, in a capture too. prepare() was called before with arguments that differ at most in addresses.
  virtual void call(Stream stream, std::span<const std::byte> arguments) = 0;
};

}  // namespace weft::cuda
