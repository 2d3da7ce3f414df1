#include "engine/speculation/speculation_pace.h"

#include <algorithm>
#include <bit>

namespace weft {
namespace {

// The first step of a trial is not measured: a draft model computes what it has missed then.
constexpr int kTrial = 9, kFirstPeriod = 64, kLongestPeriod = 1024;
constexpr double kWeightOfLastStep = 0.25;

}  // namespace

bool SpeculationPace::begin(std::int64_t decoding) {
  load_ = &loads_[static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(decoding)))];
  return !is_on_ || load_->proposes;
}

void SpeculationPace::observe(double seconds, std::int64_t tokens) {
  if (!is_on_ || load_ == nullptr || tokens <= 0) return;
  Load& load = *load_;
  double& mean = load.seconds_per_token[load.proposes ? 1 : 0];
  const double last = seconds / static_cast<double>(tokens);
  const int step = load.steps++;
  if (step == 1 && load.is_trial) mean = last;  // what was measured before the trial may be long ago
  if (step > 0) mean += kWeightOfLastStep * (last - mean);
  if (load.steps >= (load.is_trial ? kTrial : load.period)) decide(load);
}

// After a trial the better way is taken, and after a while of that the other one is tried.
void SpeculationPace::decide(Load& load) {
  const auto [without, with] = load.seconds_per_token;
  const bool was_trial = load.is_trial, tried = load.proposes;
  load.steps = 0;
  load.is_trial = !was_trial || without == 0 || with == 0;
  load.proposes = load.is_trial ? !tried : with <= without;
  if (load.is_trial) return;
  const bool changes = load.proposes == tried;  // what was tried is better
  load.period = changes || load.period == 0 ? kFirstPeriod : std::min(2 * load.period, kLongestPeriod);
}

}  // namespace weft
