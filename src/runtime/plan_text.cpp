#include <fmt/core.h>

#include "runtime/plan.h"

namespace weft {
namespace {

std::string view_text(const PlanView& view) {
  if (view.slot < 0) return "none";
  std::string text = fmt::format("%{}:{} {}", view.slot, view.version, view.meta.text());
  if (!(view.byte_offset == Dim(0))) text += " + " + view.byte_offset.text();
  return text;
}

std::string slot_text(const PlanSlot& slot) {
  switch (slot.kind) {
    case SlotKind::input:
      return fmt::format("{}input {}: {}", slot.donated ? "donated " : "", slot.name, slot.meta.text());
    case SlotKind::param:
      return fmt::format("param {}: {}", slot.name, slot.meta.text());
    case SlotKind::arena:
      return fmt::format("arena {} bytes at {}, steps {}-{}", slot.bytes.text(), slot.offset, slot.first_step,
                         slot.last_step);
    case SlotKind::scalar:
      return fmt::format("scalar {}", slot.scalar);
  }
  return "";
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::string text = fmt::format("plan {}: {} steps, arena {} bytes ({} without reuse)\n", plan.name, plan.steps.size(),
                                 plan.arena_bytes, plan.unshared_bytes);
  for (std::size_t i = 0; i < plan.slots.size(); ++i) text += fmt::format("slot {} {}\n", i, slot_text(plan.slots[i]));
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    text += fmt::format("{} {}@{}(", i, step.op, step.kernel->provider);
    std::string separator;
    for (const PlanView& view : step.operands) {
      text += separator + view_text(view);
      separator = ", ";
    }
    for (const auto& [name, value] : step.attributes.entries()) {
      if (value.is_none()) continue;
      text += separator + name + "=" + value.text();
      separator = ", ";
    }
    text += ") -> ";
    separator.clear();
    for (const PlanView& view : step.results) {
      text += separator + view_text(view);
      separator = ", ";
    }
    if (!(step.scratch_bytes == Dim(0)))
      text += fmt::format(", scratch {} bytes at {}", step.scratch_bytes.text(), step.scratch_offset);
    text += "\n";
  }
  text += "return";
  for (const PlanView& view : plan.results) text += " " + view_text(view);
  return text + "\n";
}

}  // namespace weft
