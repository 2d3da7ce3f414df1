#pragma once

// The peak rates of the machine, as a reference for measured times.

#include <functional>

#include "parallel/thread_pool.h"
#include "tensor/device.h"

namespace weft {

struct MachineRoof {
  double read_bytes = 0;     // per second, in a plain read of 96 MiB
  double multiply_adds = 0;  // f32 operations per second on registers; a fused multiply-add counts as two

  // Returns the time that the machine needs at its peak rates, in percent of `seconds`: the time for the bytes or for
  // the operations, whichever is longer. It can exceed 100 for bytes in caches and for int8 operations.
  double percent(double bytes, double operations, double seconds) const;
};

// Returns the clock rate of a busy core in cycles per second. It times a dependency chain of additions and returns the
// best of several tries.
double measure_clock_rate(const std::function<double()>& clock);

// Returns the size of the largest cache that cores share, in bytes, as the system reports it; 0 if the system does not
// report it.
std::int64_t shared_cache_bytes();

// Returns the best of several tries, on all threads, with the instruction set in use. `clock` returns seconds from any
// start. It takes about 100 ms.
MachineRoof measure_roof(ThreadPool& threads, CpuFeatures features, const std::function<double()>& clock);

}  // namespace weft
