#pragma once

// Runs single steps of a Plan without captures. Each step is resolved when it runs, from the Plan and the tensors bound
// at that time, in memory that the constructor allocates. Replay must give the same results. The two share only three
// things: how a size is evaluated (SymbolicSize::value, which launch lists use for few of their sizes), the base
// addresses of slots, and the indices of the symbols.

#include <span>
#include <string>
#include <vector>

#include "runtime/launch_times.h"
#include "runtime/symbolic_view.h"

namespace weft {

class StepByStep {
 public:
  // Symbol i of the Plan's sizes is symbols[i]; InternalError for a symbol that is not among them. `bound` must outlive
  // this object and must not move.
  StepByStep(const BoundPlan& bound, std::span<const std::string> symbols);
  StepByStep(const StepByStep&) = delete;
  StepByStep& operator=(const StepByStep&) = delete;

  // Runs a step with values[i] for symbol i, or queues it where the bound memory has a queue. Only the kernel's call
  // adds to `times`, unless that is null.
  void run(std::size_t step, std::span<const std::int64_t> values, LaunchTimes* times = nullptr);

 private:
  const BoundPlan& bound_;
  std::vector<SymbolicView> views_;            // for each step its operands, then its results
  std::vector<std::size_t> first_view_;        // by step
  std::vector<std::span<std::byte>> scratch_;  // by step
  std::vector<TensorView> room_;               // as large as the step with the most views needs
};

}  // namespace weft
