#pragma once

// Time, cut into named laps without gaps: what happened between two laps counts for the second.

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace weft {

class Stopwatch {
 public:
  // Ends a lap. A name that was there before gets the time added.
  void lap(const std::string& name) {
    const auto now = std::chrono::steady_clock::now();
    const double milliseconds = std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
    for (auto& [known, total] : laps_)
      if (known == name) {
        total += milliseconds;
        return;
      }
    laps_.emplace_back(name, milliseconds);
  }
  // Milliseconds, in the order of first laps.
  const std::vector<std::pair<std::string, double>>& laps() const { return laps_; }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::vector<std::pair<std::string, double>> laps_;
};

}  // namespace weft
