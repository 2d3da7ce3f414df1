#pragma once

// A library that queues work of its own on a device's stream (LaunchQueue::call_library).

#include <cstddef>
#include <span>

#include "runtime/cuda/driver.h"

namespace weft::cuda {

class DeviceLibrary {
 public:
  virtual ~DeviceLibrary() = default;
  // Has ready what a call with such arguments needs: descriptions, memory, code. Not in a capture. DeviceError where
  // the library refuses the call.
  virtual void prepare(Stream stream, std::span<const std::byte> arguments) = 0;
  // The calls that were prepared for and have not come will not come.
  virtual void expect_no_more() noexcept = 0;
  // Queues the call, in a capture too. It was prepared, for arguments that differ in addresses at most.
  virtual void call(Stream stream, std::span<const std::byte> arguments) = 0;
};

}  // namespace weft::cuda
