#pragma once

// Runs single steps of a Plan with nothing captured: its sizes are looked up, by the symbols' names, when it runs. What
// replay must agree with.

#include "runtime/bound_plan.h"
#include "runtime/launch_times.h"

namespace weft {

// A view's address and sizes for these values of the symbols. UserError for a symbol without a value.
TensorView resolve_view(const BoundPlan& bound, const PlanView& view, const Bindings& symbols);

// Only the kernel's call adds to `times`, unless that is null.
void run_step(const BoundPlan& bound, std::size_t step, const Bindings& symbols, LaunchTimes* times = nullptr);

}  // namespace weft
