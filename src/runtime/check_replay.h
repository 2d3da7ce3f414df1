#pragma once

// Compares a replay with the same run step by step: all results must be the same, by the rule of
// tensor/same_elements.h.

#include <functional>

#include "runtime/bound_plan.h"

namespace weft {

// Called after every step with its index.
using StepObserver = std::function<void(std::size_t step)>;

// Both functions run the whole Plan over the bound tensors with the same values of the symbols, and call the observer
// if there is one.
struct CheckedRuns {
  std::function<void(const StepObserver&)> replay;
  std::function<void(const StepObserver&)> step_by_step;
  // A view of the Plan, in these runs' sizes.
  std::function<TensorView(const PlanView&)> view;
  // `copy` queues a copy between bound memory and host memory; `wait` waits for the queued copies. Both are null where
  // the host can read bound memory.
  std::function<void(void* to, const void* from, std::size_t bytes)> copy = {};
  std::function<void()> wait = {};
};

// Runs both and compares the results and the inputs that were overwritten (of KV pages, those of the sequences in the
// batch). These inputs are restored before the second run. InternalError when one differs; it names the first step
// whose result differs, its op, its piece and the largest difference. Afterwards all memory holds what the run step by
// step wrote.
void check_replay(const BoundPlan& bound, const CheckedRuns& runs);

}  // namespace weft
