#pragma once

// Runs single steps of a Plan with nothing captured: what a step looks into is resolved when it runs, from the Plan and
// what is bound at that time, into memory that was taken when this was made. What replay must agree with: of a launch
// list it shares how a size is a sum of products (SymbolicSize::value, which lists take for few of their sizes), where
// slots begin, and the numbers of the symbols.

#include <span>
#include <string>
#include <vector>

#include "runtime/launch_times.h"
#include "runtime/symbolic_view.h"

namespace weft {

class StepByStep {
 public:
  // Symbol i of the Plan's sizes is symbols[i]; InternalError for one that is not among them. `bound` must outlive it
  // and stay where it is.
  StepByStep(const BoundPlan& bound, std::span<const std::string> symbols);
  StepByStep(const StepByStep&) = delete;
  StepByStep& operator=(const StepByStep&) = delete;

  // Runs a step where symbol i is values[i], or gives it to the queue of what is bound. Only the kernel's call adds to
  // `times`, unless that is null.
  void run(std::size_t step, std::span<const std::int64_t> values, LaunchTimes* times = nullptr);

 private:
  const BoundPlan& bound_;
  std::vector<SymbolicView> views_;            // operands, then results, of each step in turn
  std::vector<std::size_t> first_view_;        // by step
  std::vector<std::span<std::byte>> scratch_;  // by step
  std::vector<TensorView> room_;               // for the views of the step that has most
};

}  // namespace weft
