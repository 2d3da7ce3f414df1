#pragma once

// The peak rates of the machine, as a reference for measured times.

#include <functional>

#include "parallel/thread_pool.h"
#include "tensor/device.h"

namespace weft {

struct MeasuredPeaks {
  double read_bytes = 0;  // per second, in a plain read of 96 MiB
  // Operations per second on registers, by the bits of the operands; a multiply-add counts as two. Those of 16 bits are
  // bf16, multiplied as f32 if that is faster, those of 8 bits integers, each with the fastest instruction of the level
  // in use that linear layers use.
  double operations = 0;  // of f32
  double operations_of_16_bits = 0;
  double operations_of_8_bits = 0;

  double operations_of(DType operand) const;
  // Returns the time that the machine needs at its peak rates, in percent of `seconds`: the time for the bytes or for
  // the operations on such operands, whichever is longer. It can exceed 100 for bytes in caches.
  double percent(double bytes, double count, DType operand, double seconds) const;
};

// Returns the clock rate of a busy core in cycles per second. It times a dependency chain of additions and returns the
// best of several tries.
double measure_clock_rate(const std::function<double()>& clock);

// Returns the size of the largest cache that cores share, in bytes, as the system reports it; 0 if the system does not
// report it.
std::int64_t shared_cache_bytes();

// Returns the best of several tries, on all threads, with the instruction set in use. `clock` returns seconds from any
// start. It takes about 200 ms.
MeasuredPeaks measure_peaks(ThreadPool& threads, CpuFeatures features, const std::function<double()>& clock);

}  // namespace weft
