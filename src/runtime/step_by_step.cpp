#include "runtime/step_by_step.h"

#include <algorithm>

namespace weft {

StepByStep::StepByStep(const BoundPlan& bound, std::span<const std::string> symbols) : bound_(bound) {
  std::size_t most = 0;
  for (const PlanStep& step : bound.plan->steps) {
    first_view_.push_back(views_.size());
    scratch_.push_back(bound.scratch(step));
    for (const std::vector<PlanView>* views : {&step.operands, &step.results})
      for (const PlanView& view : *views) views_.emplace_back(view, symbols);
    most = std::max(most, step.operands.size() + step.results.size());
  }
  room_.resize(most);
}

void StepByStep::run(std::size_t index, std::span<const std::int64_t> values, LaunchTimes* times) {
  const PlanStep& step = bound_.plan->steps[index];
  const std::span<TensorView> views = std::span(room_).first(step.operands.size() + step.results.size());
  for (std::size_t i = 0; i < views.size(); ++i) views[i] = views_[first_view_[index] + i].resolve(bound_, values);
  timed_launch(*step.kernel,
               {.operands = views.first(step.operands.size()),
                .results = views.subspan(step.operands.size()),
                .attributes = step.attributes,
                .scratch = scratch_[index],
                .threads = bound_.threads,
                .groups = bound_.groups,
                .queue = bound_.queue},
               times);
}

}  // namespace weft
