#include <algorithm>

#include "base/error.h"
#include "runtime/plan.h"

namespace weft {
namespace {

constexpr std::int64_t kAlignment = 64;  // a cache line, and the widest vector

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::int64_t upper_bound(const Dim& bytes, const Bounds& bounds) {
  const Interval range = bytes.range(bounds);
  CHECK(range.hi < INT64_MAX, "the size {} has no upper bound", bytes.text());
  return range.hi;
}

void find_lifetimes(Plan& plan) {
  auto touch = [&](const PlanView& view, int step) {
    if (view.slot < 0) return;
    PlanSlot& slot = plan.slots[static_cast<std::size_t>(view.slot)];
    if (slot.first_step < 0) slot.first_step = step;
    slot.last_step = std::max(slot.last_step, step);
  };
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    for (const PlanView& view : plan.steps[i].operands) touch(view, static_cast<int>(i));
    for (const PlanView& view : plan.steps[i].results) touch(view, static_cast<int>(i));
  }
  for (const PlanView& view : plan.results) touch(view, static_cast<int>(plan.steps.size()));
}

bool live_together(const PlanSlot& a, const PlanSlot& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

}  // namespace

void plan_memory(Plan& plan) {
  find_lifetimes(plan);
  struct Block {
    PlanSlot* slot;
    std::int64_t bytes;
  };
  std::vector<Block> blocks;
  plan.unshared_bytes = 0;
  for (PlanSlot& slot : plan.slots) {
    if (slot.kind != SlotKind::arena || slot.first_step < 0) continue;
    blocks.push_back({&slot, aligned(upper_bound(slot.bytes, plan.bounds))});
    plan.unshared_bytes += blocks.back().bytes;
  }
  std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
  std::int64_t end = 0;
  std::vector<Block> placed;  // by offset
  for (const Block& block : blocks) {
    std::int64_t offset = 0;
    for (const Block& other : placed) {
      if (!live_together(*block.slot, *other.slot)) continue;
      if (offset + block.bytes <= other.slot->offset) break;
      offset = std::max(offset, other.slot->offset + other.bytes);
    }
    block.slot->offset = offset;
    end = std::max(end, offset + block.bytes);
    auto after = std::find_if(placed.begin(), placed.end(), [&](const Block& b) { return b.slot->offset > offset; });
    placed.insert(after, block);
  }
  plan.scratch_offset = end;
  std::int64_t scratch = 0;
  for (const PlanStep& step : plan.steps) scratch = std::max(scratch, upper_bound(step.scratch_bytes, plan.bounds));
  plan.arena_bytes = end + aligned(scratch);
  plan.unshared_bytes += aligned(scratch);
}

}  // namespace weft
