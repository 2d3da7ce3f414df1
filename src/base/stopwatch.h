#pragma once

// Time, cut into named laps without gaps: what happened between two laps counts for the second.

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace weft {

class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  Stopwatch() : Stopwatch(Clock::now()) {}
  // As if it had been made at `begin`.
  explicit Stopwatch(Clock::time_point begin) : begin_(begin), last_(begin) {}

  // Ends a lap and gives its milliseconds. A name that was there before gets the time added.
  double lap(const std::string& name) {
    const auto now = Clock::now();
    const double milliseconds = std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
    for (auto& [known, total] : laps_)
      if (known == name) {
        total += milliseconds;
        return milliseconds;
      }
    laps_.emplace_back(name, milliseconds);
    return milliseconds;
  }
  // Milliseconds since the beginning.
  double total() const { return std::chrono::duration<double, std::milli>(Clock::now() - begin_).count(); }
  // Milliseconds from the beginning to the end of the last lap, by the reading of the clock that ended it: all laps
  // together, whenever it is asked.
  double lapped() const { return std::chrono::duration<double, std::milli>(last_ - begin_).count(); }
  // Milliseconds, in the order of first laps.
  const std::vector<std::pair<std::string, double>>& laps() const { return laps_; }

 private:
  Clock::time_point begin_;
  Clock::time_point last_;
  std::vector<std::pair<std::string, double>> laps_;
};

}  // namespace weft
