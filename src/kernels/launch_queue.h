#pragma once

// The queue of a device other than the host's processor: launches of its own kernels, work of its libraries, and calls
// of kernels that the host runs instead. One queue runs all of them in the order of submission.

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "base/error.h"
#include "kernels/kernel.h"
#include "kernels/launch_shape.h"

namespace weft {

class LaunchQueue {
 public:
  virtual ~LaunchQueue() = default;
  // The device's name, for messages.
  virtual std::string device() const = 0;
  // Launches the device's kernel of that name, which takes one plain struct; the bytes are copied. DeviceError if the
  // queue does not accept it. Later errors are thrown by the call that waits for the queue.
  virtual void launch(const std::string& kernel, const LaunchShape& shape, std::span<const std::byte> arguments) = 0;
  // Runs `function` on a thread of the host. It must not submit to the queue. The call that waits for the queue throws
  // what `function` throws; host functions after it are skipped until then.
  virtual void run_on_host(const std::string& name, std::function<void()> function) = 0;
  // Calls a library's function of that name on the device; it takes one plain struct, and the bytes are copied.
  // DeviceError at once if the library refuses, or if the queue has no such library.
  virtual void call_library(const std::string& function, std::span<const std::byte> arguments);
};

// Runs `body`. A UserError, which is about a call's input, gets the text that `name` returns as a prefix: device and
// call, in the form of the driver's errors, "[cuda:0] rms_norm@cuda".
template <class Name, class Body>
void named_by(Name&& name, Body&& body) {
  try {
    body();
  } catch (const UserError& error) {
    fail_user("{}: {}", name(), error.what());
  }
}

// Submits a call to its queue, which it must have. A kernel with `launches` launches now; the host runs another kernel
// when the queue reaches it, with the sizes and addresses of now. Attributes, metas and the memory of the views must
// stay valid until then. If the input of a launch is wrong, throws UserError now and leaves the queue unchanged.
void queue_call(const Kernel& kernel, const KernelCall& call);

// Runs a call, or submits it to its queue if it has one.
inline void run_in_order(const Kernel& kernel, const KernelCall& call) {
  call.queue == nullptr ? kernel.run(call) : queue_call(kernel, call);
}

}  // namespace weft
