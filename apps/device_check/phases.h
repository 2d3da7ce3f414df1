#pragma once

// Measures the time of the parts of the check.

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "apps/device_check/report.h"

namespace weft::device_check {

// Returns the result of `work`. Its time is added to `phases` even if it throws.
template <class Work>
auto run_phase(std::vector<Phase>& phases, std::string name, Work work) {
  class Timed {
   public:
    Timed(std::vector<Phase>& phases, std::string name) : phases_(phases), name_(std::move(name)) {}
    ~Timed() {
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin_;
      phases_.push_back({std::move(name_), took.count()});
    }

   private:
    std::vector<Phase>& phases_;
    std::string name_;
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  } timed(phases, std::move(name));
  return work();
}

}  // namespace weft::device_check
