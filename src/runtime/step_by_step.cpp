#include "runtime/step_by_step.h"

namespace weft {

TensorView resolve_view(const BoundPlan& bound, const PlanView& from, const Bindings& symbols) {
  TensorView view = unresolved_view(from);
  if (from.slot < 0) return view;
  const auto slot = static_cast<std::size_t>(from.slot);
  if (std::byte* base = bound.base(slot); base != nullptr) view.data = base + from.byte_offset.evaluate(symbols);
  if (from.meta.kind == MetaKind::kv) view.size[0] = bound.pages(slot);
  if (!from.meta.is_tensor()) return view;
  const Shape strides = from.meta.full_strides();
  for (std::size_t i = 0; i < from.meta.shape.size(); ++i) {
    view.size[i] = from.meta.shape[i].evaluate(symbols);
    view.stride[i] = strides[i].evaluate(symbols);
  }
  return view;
}

void run_step(const BoundPlan& bound, std::size_t index, const Bindings& symbols, LaunchTimes* times) {
  const PlanStep& step = bound.plan->steps[index];
  std::vector<TensorView> operands, results;
  for (const PlanView& view : step.operands) operands.push_back(resolve_view(bound, view, symbols));
  for (const PlanView& view : step.results) results.push_back(resolve_view(bound, view, symbols));
  timed_launch(*step.kernel,
               {operands, results, step.attributes, bound.scratch(step), bound.threads, bound.groups, bound.queue},
               times);
}

}  // namespace weft
