#pragma once

// Makes a device and a stream current on this thread, for as long as it lives; those that were current before are so
// again afterwards, also when something throws. Libraries that are called under it find the device that they are for.

#include <span>

#include "runtime/cuda/driver.h"

namespace weft::cuda {

class CurrentGuard {
 public:
  CurrentGuard(Driver& driver, Stream stream);
  // The device whose memory the addresses are of, and the stream that is current there. Null addresses, of optional
  // arguments, are passed over. DeviceError when there are none, when one is the host's, or they are of two devices.
  CurrentGuard(Driver& driver, std::span<const void* const> arguments);
  ~CurrentGuard();
  CurrentGuard(const CurrentGuard&) = delete;
  CurrentGuard& operator=(const CurrentGuard&) = delete;

  Stream stream() const { return stream_; }

 private:
  Driver& driver_;
  const Stream stream_;
  const int device_before_;
  const Stream stream_before_;  // of stream_'s device
};

// A capture on a stream that is current. What is thrown inside ends it, so that the stream goes on.
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
    is_open_ = false;  // not before: it may throw with the capture still open
    return {driver_, graph};
  }

 private:
  Driver& driver_;
  const Stream stream_;
  bool is_open_ = true;
};

}  // namespace weft::cuda
