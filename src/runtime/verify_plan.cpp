#include <algorithm>

#include "base/error.h"
#include "runtime/plan.h"
#include "tensor/footprint.h"

namespace weft {
namespace {

class PlanVerifier {
 public:
  explicit PlanVerifier(const Plan& plan) : plan_(plan), writes_(plan.slots.size()) {}

  void run() {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const PlanStep& step = plan_.steps[i];
      const std::string where = fmt::format("step {} {}", i, step.op);
      for (const PlanView& view : step.operands) check_read(view, where);
      for (const PlanView& view : step.results) check_write(view, step, where);
    }
    for (const PlanView& view : plan_.results) {
      check_read(view, "the end");
      const PlanSlot& slot = plan_.slots[static_cast<std::size_t>(view.slot)];
      require(view.meta.kind != MetaKind::kv || (slot.kind == SlotKind::input && slot.donated), "the end",
              "KV pages are returned in slot {}, which is not a donated input", view.slot);
    }
  }

 private:
  template <class... Parts>
  void require(bool good, const std::string& where, fmt::format_string<Parts...> format, Parts&&... parts) const {
    CHECK(good, "plan {}, {}: {}", plan_.name, where, fmt::format(format, std::forward<Parts>(parts)...));
  }

  void check_slot(const PlanView& view, const std::string& where) const {
    require(view.slot < static_cast<int>(plan_.slots.size()), where, "there is no slot {}", view.slot);
  }

  void check_read(const PlanView& view, const std::string& where) const {
    if (view.slot < 0) return;
    check_slot(view, where);
    const auto slot = static_cast<std::size_t>(view.slot);
    const int last =
        writes_[slot].empty() ? (plan_.slots[slot].kind == SlotKind::arena ? -1 : 0) : writes_[slot].back().version;
    require(view.version <= last, where, "reads version {} of slot {}, which is not there yet", view.version,
            view.slot);
    for (const PlanView& write : writes_[slot])
      require(write.version <= view.version || !may_overlap(write.meta, write.byte_offset, view.meta, view.byte_offset),
              where, "reads version {} of slot {}, part of which version {} overwrote", view.version, view.slot,
              write.version);
  }

  void check_write(const PlanView& view, const PlanStep& step, const std::string& where) {
    require(view.slot >= 0, where, "has a result without a slot");
    check_slot(view, where);
    const auto index = static_cast<std::size_t>(view.slot);
    const PlanSlot& slot = plan_.slots[index];
    if (slot.kind == SlotKind::arena && writes_[index].empty()) {
      require(view.version == 0, where, "makes version {} of the fresh slot {}", view.version, view.slot);
    } else {
      const bool in_place = std::any_of(step.operands.begin(), step.operands.end(),
                                        [&](const PlanView& operand) { return operand.slot == view.slot; });
      require(in_place, where, "overwrites slot {}, which is not its operand", view.slot);
      require(slot.kind == SlotKind::arena || (slot.kind == SlotKind::input && slot.donated), where,
              "overwrites slot {} ({}), which was not donated", view.slot, slot.name);
      const int last = writes_[index].empty() ? 0 : writes_[index].back().version;
      require(view.version == last + 1, where, "makes version {} of slot {} after version {}", view.version, view.slot,
              last);
    }
    writes_[index].push_back(view);
  }

  const Plan& plan_;
  std::vector<std::vector<PlanView>> writes_;  // by slot, in order
};

}  // namespace

void verify_plan(const Plan& plan) { PlanVerifier(plan).run(); }

}  // namespace weft
