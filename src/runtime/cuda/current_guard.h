#pragma once

// Makes a device and a stream current on this thread for the guard's lifetime, and restores the previous ones
// afterwards, also after an exception. Libraries that are called under the guard use this device.

#include <span>

#include "runtime/cuda/driver.h"

namespace weft::cuda {

class CurrentGuard {
 public:
  CurrentGuard(Driver& driver, Stream stream);
  // Uses the device that owns the memory at the addresses, and the current stream of that device. Null addresses, of
  // optional arguments, are skipped. DeviceError when there are no addresses, when one is host memory, or when they
  // belong to two devices.
  CurrentGuard(Driver& driver, std::span<const void* const> arguments);
  ~CurrentGuard();
  CurrentGuard(const CurrentGuard&) = delete;
  CurrentGuard& operator=(const CurrentGuard&) = delete;

  Stream stream() const { return stream_; }

 private:
  Driver& driver_;
  const Stream stream_;
  const int device_before_;
  const Stream stream_before_;  // the current stream of stream_'s device before
};

// A capture on a stream that is current. An exception inside ends the capture, so that the stream stays usable.
class CaptureScope {
 public:
  CaptureScope(Driver& driver, Stream stream) : driver_(driver), stream_(stream) { driver.begin_capture(stream); }
  ~CaptureScope() {
    if (is_open_) driver_.abandon_capture(stream_);
  }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

  Owner<GraphObject> end() {
    const CapturedGraph graph = driver_.end_capture(stream_);
    is_open_ = false;  // only now: end_capture may throw with the capture still open
    return {driver_, graph};
  }

 private:
  Driver& driver_;
  const Stream stream_;
  bool is_open_ = true;
};

}  // namespace weft::cuda
