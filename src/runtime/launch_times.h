#pragma once

// The time that kernel calls take. It is measured only where the caller asks for it.

#include <chrono>
#include <cstdint>

#include "kernels/launch_queue.h"

namespace weft {

struct LaunchTimes {
  std::int64_t launches = 0;
  std::chrono::nanoseconds wall{0};  // from each call to its return, waits for other threads included
};

// Calls a kernel and adds its time to `times` unless that is null. With a queue, only queueing is measured.
inline void timed_launch(const Kernel& kernel, const KernelCall& call, LaunchTimes* times) {
  if (times == nullptr) return run_in_order(kernel, call);
  const auto start = std::chrono::steady_clock::now();
  run_in_order(kernel, call);
  times->wall += std::chrono::steady_clock::now() - start;
  ++times->launches;
}

}  // namespace weft
