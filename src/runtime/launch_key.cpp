#include "runtime/launch_key.h"

#include <fmt/core.h>

#include "base/sort.h"

namespace weft {
namespace {

const Batch& batch_in(const BoundPlan& bound, std::size_t slot) {
  return *reinterpret_cast<const Batch*>(bound.base(slot));
}

}  // namespace

void LaunchKey::add(std::size_t first, std::size_t last) {
  const Plan& plan = *list_->bound().plan;
  for (std::size_t i = first; i < last; ++i) {
    const PlanStep& step = plan.steps[i];
    for (const std::vector<PlanView>* views : {&step.operands, &step.results})
      for (const PlanView& view : *views) {
        if (view.slot < 0) continue;
        const auto slot = static_cast<std::size_t>(view.slot);
        if (plan.slots[slot].kind != SlotKind::arena) bound_.push_back(slot);
        if (view.meta.kind == MetaKind::batch && step.kernel->launches) batches_.push_back(slot);
      }
  }
  sort_without_repeats(bound_);
  sort_without_repeats(batches_);
}

void LaunchKey::numbers(std::vector<std::int64_t>& into) const {
  into.assign(list_->values().begin(), list_->values().end());
  for (const std::size_t slot : batches_) {
    const Batch& batch = batch_in(list_->bound(), slot);
    into.push_back(batch.sequences);
    into.push_back(batch.max_blocks);
  }
}

void LaunchKey::addresses(std::vector<BoundAddress>& into) const {
  into.clear();
  for (const std::size_t slot : bound_) into.push_back({list_->bound().base(slot), list_->bound().pages(slot)});
}

std::string LaunchKey::text() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (std::size_t i = 0; i < list_->symbols().size(); ++i)
    add(fmt::format("{} = {}", list_->symbols()[i], list_->values()[i]));
  for (const std::size_t slot : batches_) {
    const Batch& batch = batch_in(list_->bound(), slot);
    add(fmt::format("{} sequence{} of {} page{}", batch.sequences, batch.sequences == 1 ? "" : "s", batch.max_blocks,
                    batch.max_blocks == 1 ? "" : "s"));
  }
  return text;
}

}  // namespace weft
