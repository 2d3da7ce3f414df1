#pragma once

// Measures times: by the machine's clock, or from a table in a test.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace weft {

// A run that is timed.
struct TimedRun {
  std::string what;       // the op, or the generated function
  std::string contender;  // the provider, or the tuning of the function
  std::int64_t rows = 0;
};

class TuningTimer {
 public:
  virtual ~TuningTimer() = default;
  // Seconds from any origin; budgets use this clock.
  virtual double now();
  // Seconds of the run. `measure` performs the run and measures its time by now().
  virtual double seconds(const TimedRun& run, const std::function<double()>& measure);
};

// One of several alternatives that are timed alternately; a call runs it and returns its seconds.
using Contender = std::function<double()>;

inline constexpr std::size_t kTuningRounds = 3;

// Nanoseconds by contender and round: the best run of each of the kTuningRounds rounds. The contenders run alternately,
// so that a disturbance of the machine affects all alike. They run as often as fits into `share` seconds, at least once
// in each round.
std::vector<std::vector<std::int64_t>> time_rounds(std::span<const Contender> contenders, double share);

}  // namespace weft
