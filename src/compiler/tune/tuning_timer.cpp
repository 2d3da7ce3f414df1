#include "compiler/tune/tuning_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace weft {
namespace {

constexpr double kMostRepeats = 100;

}  // namespace

double TuningTimer::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double TuningTimer::seconds(const TimedRun&, const std::function<double()>& measure) { return measure(); }

std::vector<std::vector<std::int64_t>> time_rounds(std::span<const Contender> contenders, double share) {
  double once = 0;  // the first runs are a warm-up and are not recorded
  for (const Contender& contender : contenders) once += contender();
  const double fitting = once > 0 ? share / (static_cast<double>(kTuningRounds) * once) : kMostRepeats;
  const int repeats = static_cast<int>(std::clamp(fitting, 1.0, kMostRepeats));
  std::vector<std::vector<std::int64_t>> nanoseconds(contenders.size());
  for (std::size_t round = 0; round < kTuningRounds; ++round) {
    std::vector<double> best(contenders.size(), 1e6);
    for (int repeat = 0; repeat < repeats; ++repeat)
      for (std::size_t i = 0; i < contenders.size(); ++i) best[i] = std::min(best[i], contenders[i]());
    for (std::size_t i = 0; i < contenders.size(); ++i)
      nanoseconds[i].push_back(std::max<std::int64_t>(1, std::llround(best[i] * 1e9)));
  }
  return nanoseconds;
}

}  // namespace weft
