#pragma once

// How long things take: by the clock of the machine, or by a table in a test.

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
  // Seconds, from any start; budgets are measured by it.
  virtual double now();
  // Seconds of the run. `measure` runs it and takes its time by now().
  virtual double seconds(const TimedRun& run, const std::function<double()>& measure);
};

// What takes turns with others, to be timed beside them; gives the seconds of one run.
using Contender = std::function<double()>;

inline constexpr std::size_t kTuningRounds = 3;

// Nanoseconds by contender and round, kTuningRounds of them: the best run of a round. All contenders run in turn, so
// that what disturbs the machine disturbs all alike, and as often as fits into `share` seconds, once a round at least.
std::vector<std::vector<std::int64_t>> time_rounds(std::span<const Contender> contenders, double share);

}  // namespace weft
