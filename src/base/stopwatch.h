#pragma once

// Time, cut into named laps without gaps: what happened between two laps counts for the second.

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace weft {

class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;
  using LapObserver = std::function<void(const std::string& name, Clock::time_point begin, Clock::time_point end)>;

  Stopwatch() : Stopwatch(Clock::now()) {}
  // As if it had been made at `begin`.
  explicit Stopwatch(Clock::time_point begin) : begin_(begin), last_(begin) {}

  // Ends a lap and gives its milliseconds. A name that was there before gets the time added.
  double lap(const std::string& name) {
    const auto now = Clock::now();
    const double milliseconds = std::chrono::duration<double, std::milli>(now - last_).count();
    if (observer_) observer_(name, last_, now);
    last_ = now;
    for (auto& [known, total] : laps_)
      if (known == name) {
        total += milliseconds;
        return milliseconds;
      }
    laps_.emplace_back(name, milliseconds);
    return milliseconds;
  }
  // Calls it at the end of every lap, and now for those that were, of which no name may have come twice.
  void observe(LapObserver observer) {
    observer_ = std::move(observer);
    auto begin = begin_;
    for (const auto& [name, milliseconds] : laps_) {
      const auto end =
          begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(milliseconds));
      observer_(name, begin, end);
      begin = end;
    }
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
  LapObserver observer_;
};

}  // namespace weft
