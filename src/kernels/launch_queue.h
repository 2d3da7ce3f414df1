#pragma once

// What a device other than the host's processor is given to do: launches of its own kernels, work of its libraries, and
// calls of kernels that the host runs in its place. One queue runs all of it in the order in which it came.

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
  // Runs the device's kernel of that name, which takes one plain struct; the bytes are copied. DeviceError where the
  // queue does not take it. What goes wrong later is thrown by what waits for the queue.
  virtual void launch(const std::string& kernel, const LaunchShape& shape, std::span<const std::byte> arguments) = 0;
  // Runs `function` on some thread of the host. It gives the queue nothing. What it throws is thrown by what waits for
  // the queue; host functions behind it are left out until then.
  virtual void run_on_host(const std::string& name, std::function<void()> function) = 0;
  // Has a library of the device do what its function of that name does, which takes one plain struct; the bytes are
  // copied. What the library refuses is a DeviceError at once, as it is where the queue has no such library.
  virtual void call_library(const std::string& function, std::span<const std::byte> arguments);
};

// Runs `body`. A UserError, which is about a call's input, then says what `name` gives in front: device and call, in
// the form of the driver's errors, "[cuda:0] rms_norm@cuda".
template <class Name, class Body>
void named_by(Name&& name, Body&& body) {
  try {
    body();
  } catch (const UserError& error) {
    fail_user("{}: {}", name(), error.what());
  }
}

// Gives a call to its queue, which it must have: a kernel that launches does so now; of another the host runs it when
// its turn comes, with the sizes and addresses of now. Attributes, metas and what the views look into must stay. What
// is wrong with the input of a launch is a UserError of now, which leaves the queue as it was.
void queue_call(const Kernel& kernel, const KernelCall& call);

// Runs a call, or gives it to its queue where it has one.
inline void run_in_order(const Kernel& kernel, const KernelCall& call) {
  call.queue == nullptr ? kernel.run(call) : queue_call(kernel, call);
}

}  // namespace weft
