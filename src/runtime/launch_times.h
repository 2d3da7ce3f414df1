#pragma once

// What the calls of kernels took, for whoever wants to know: nothing is measured where nobody asked.

#include <chrono>
#include <cstdint>

#include "kernels/launch_queue.h"

namespace weft {

struct LaunchTimes {
  std::int64_t launches = 0;
  std::chrono::nanoseconds wall{0};  // from each call to its return, other threads' work and waiting for them in it
};

// Calls a kernel and adds to `times` unless that is null. With a queue it is the giving that takes the time.
inline void timed_launch(const Kernel& kernel, const KernelCall& call, LaunchTimes* times) {
  if (times == nullptr) return run_in_order(kernel, call);
  const auto start = std::chrono::steady_clock::now();
  run_in_order(kernel, call);
  times->wall += std::chrono::steady_clock::now() - start;
  ++times->launches;
}

}  // namespace weft
