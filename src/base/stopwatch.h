#pragma once

// Measures time in named laps without gaps: the time between two calls of lap() belongs to the second one.

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
  // Behaves as if it was constructed at `begin`.
  explicit Stopwatch(Clock::time_point begin) : begin_(begin), last_(begin) {}

  // Ends a lap and returns its milliseconds. The time is added to an earlier lap with the same name.
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
  // Calls the observer at the end of each lap, and at once for each past lap. Names of past laps must be unique.
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
  // Milliseconds from the beginning to the end of the last lap: the sum of all laps, independent of the time of the
  // call.
  double lapped() const { return std::chrono::duration<double, std::milli>(last_ - begin_).count(); }
  // The milliseconds of each name, in the order of first laps.
  const std::vector<std::pair<std::string, double>>& laps() const { return laps_; }

 private:
  Clock::time_point begin_;
  Clock::time_point last_;
  std::vector<std::pair<std::string, double>> laps_;
  LapObserver observer_;
};

}  // namespace weft
