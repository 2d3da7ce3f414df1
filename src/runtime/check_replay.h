#pragma once

// Holds a replay against the same run step by step: every bit it leaves must be the same.

#include <functional>

#include "runtime/bound_plan.h"

namespace weft {

// Called after every step with its index.
using StepObserver = std::function<void(std::size_t step)>;

// Both run the whole Plan over what is bound, for the same values of the symbols; each calls a given observer.
struct CheckedRuns {
  std::function<void(const StepObserver&)> replay;
  std::function<void(const StepObserver&)> step_by_step;
  // A view of the Plan, in these runs' sizes.
  std::function<TensorView(const PlanView&)> view;
  // Queues a copy between what is bound and the host's memory, and waits for those that were queued; both null where
  // the host reads what is bound.
  std::function<void(void* to, const void* from, std::size_t bytes)> copy = {};
  std::function<void()> wait = {};
};

// Runs both and compares the results and what was written over inputs (of KV pages, those of the sequences in the
// batch), which is put back before the second run. InternalError when a bit differs, with the first step whose result
// does, its op, piece and the largest difference. Afterwards all memory is as the run step by step left it.
void check_replay(const BoundPlan& bound, const CheckedRuns& runs);

}  // namespace weft
