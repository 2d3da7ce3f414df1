#pragma once

// A timer with times that a test chooses; it runs nothing.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "compiler/tune/tuning_timer.h"

namespace weft {

class TableTimer : public TuningTimer {
 public:
  // `seconds` of a run; the clock moves by them.
  explicit TableTimer(std::function<double(const TimedRun&)> seconds = [](const TimedRun&) { return 1e-3; })
      : table(std::move(seconds)) {}
  double now() override { return at; }
  double seconds(const TimedRun& run, const std::function<double()>&) override {
    ++runs;
    sizes.insert(run.rows);
    timed.insert(run.what + "@" + run.contender);
    const double taken = table(run);
    at += taken;
    return taken;
  }

  std::function<double(const TimedRun&)> table;
  double at = 0;
  int runs = 0;
  std::set<std::int64_t> sizes;
  std::set<std::string> timed;
};

}  // namespace weft
