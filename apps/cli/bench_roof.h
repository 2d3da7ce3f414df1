#pragma once

// What the machine can do at most, so that times can be held against it.

#include <functional>

#include "base/thread_pool.h"
#include "tensor/device.h"

namespace weft {

struct MachineRoof {
  double read_bytes = 0;     // a second: a plain read of 96 MiB
  double multiply_adds = 0;  // f32 operations a second, two for each fused multiply-add, from registers

  // The part of the time that the machine itself needs, in percent: that of the bytes or that of the operations,
  // whichever is longer. Above 100 for bytes that lie in caches, and for int8 operations.
  double percent(double bytes, double operations, double seconds) const;
};

// Cycles a second of a core that computes: the length of a chain of additions, the best of several tries.
double measure_clock_rate(const std::function<double()>& clock);

// What the cores share at most, in bytes, as the system says; 0 where it does not.
std::int64_t shared_cache_bytes();

// The best of several tries, on all threads, with the instruction set in use. `clock` gives seconds from any start.
// Takes about 100 ms.
MachineRoof measure_roof(ThreadPool& threads, CpuFeatures features, const std::function<double()>& clock);

}  // namespace weft
