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

// A piece of the arena: for a slot or for several one after another, or for the scratch of a step.
struct Block {
  int slot;  // the first; -1 for scratch
  std::int64_t bytes;
  int first_step, last_step;
  std::int64_t offset = 0;
};

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

// The slot of an operand in which a result may lie, or -1: of the same size, made by some step and read by no later
// one, nor otherwise by this one.
int slot_under(const Plan& plan, int step, std::size_t result) {
  const PlanStep& maker = plan.steps[static_cast<std::size_t>(step)];
  if (maker.kernel == nullptr || result >= maker.kernel->may_lie_over.size()) return -1;
  const int over = maker.kernel->may_lie_over[result];
  if (over < 0) return -1;
  const PlanView& operand = maker.operands.at(static_cast<std::size_t>(over));
  const PlanSlot& under = plan.slots[static_cast<std::size_t>(operand.slot)];
  const PlanSlot& slot = plan.slots[static_cast<std::size_t>(maker.results[result].slot)];
  const auto reads = std::count_if(maker.operands.begin(), maker.operands.end(),
                                   [&](const PlanView& view) { return view.slot == operand.slot; });
  const bool fits = under.kind == SlotKind::arena && slot.kind == SlotKind::arena && operand.byte_offset == Dim(0) &&
                    maker.results[result].byte_offset == Dim(0) && under.bytes == slot.bytes;
  return fits && reads == 1 && under.last_step == step && slot.first_step == step ? operand.slot : -1;
}

// By slot: the first of those that lie in one place one after another, itself where it lies alone.
std::vector<int> first_in_place(const Plan& plan) {
  std::vector<int> first(plan.slots.size());
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<int>(i);
  for (int step = 0; step < static_cast<int>(plan.steps.size()); ++step) {
    const PlanStep& maker = plan.steps[static_cast<std::size_t>(step)];
    for (std::size_t result = 0; result < maker.results.size(); ++result)
      if (const int under = slot_under(plan, step, result); under >= 0)
        first[static_cast<std::size_t>(maker.results[result].slot)] = first[static_cast<std::size_t>(under)];
  }
  return first;
}

bool live_together(const Block& a, const Block& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

std::vector<Block> slot_blocks(Plan& plan, const std::vector<int>& first) {
  std::vector<Block> blocks;
  std::vector<int> block_of(first.size(), -1);  // by first slot
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    const PlanSlot& slot = plan.slots[i];
    if (slot.kind != SlotKind::arena || slot.first_step < 0) continue;
    const std::int64_t bytes = aligned(upper_bound(slot.bytes, plan.bounds));
    plan.unshared_bytes += bytes;
    int& number = block_of[static_cast<std::size_t>(first[i])];
    if (number < 0) {
      number = static_cast<int>(blocks.size());
      blocks.push_back({first[i], bytes, slot.first_step, slot.last_step});
    } else {
      blocks[static_cast<std::size_t>(number)].last_step = slot.last_step;
    }
  }
  return blocks;
}

void add_scratch(Plan& plan, std::vector<Block>& blocks) {
  std::int64_t largest = 0;
  for (int step = 0; step < static_cast<int>(plan.steps.size()); ++step) {
    const std::int64_t bytes =
        aligned(upper_bound(plan.steps[static_cast<std::size_t>(step)].scratch_bytes, plan.bounds));
    if (bytes > 0) blocks.push_back({-1, bytes, step, step});
    largest = std::max(largest, bytes);
  }
  plan.unshared_bytes += largest;
}

// Gives each its offset. Where they end.
std::int64_t place(std::vector<Block>& blocks) {
  // Of those of one size what stays longest goes first, as it leaves the fewest gaps to choose from.
  std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.last_step - a.first_step > b.last_step - b.first_step;
  });
  std::int64_t end = 0;
  std::vector<Block> placed;  // by offset
  for (Block& block : blocks) {
    for (const Block& other : placed) {
      if (!live_together(block, other)) continue;
      if (block.offset + block.bytes <= other.offset) break;
      block.offset = std::max(block.offset, other.offset + other.bytes);
    }
    end = std::max(end, block.offset + block.bytes);
    const auto after =
        std::find_if(placed.begin(), placed.end(), [&](const Block& b) { return b.offset > block.offset; });
    placed.insert(after, block);
  }
  return end;
}

}  // namespace

void plan_memory(Plan& plan) {
  find_lifetimes(plan);
  const std::vector<int> first = first_in_place(plan);
  plan.unshared_bytes = 0;
  std::vector<Block> blocks = slot_blocks(plan, first);
  add_scratch(plan, blocks);
  plan.arena_bytes = place(blocks);
  for (const Block& block : blocks) {
    if (block.slot >= 0) {
      plan.slots[static_cast<std::size_t>(block.slot)].offset = block.offset;
    } else {
      plan.steps[static_cast<std::size_t>(block.first_step)].scratch_offset = block.offset;
    }
  }
  for (std::size_t i = 0; i < first.size(); ++i)
    if (plan.slots[i].kind == SlotKind::arena)
      plan.slots[i].offset = plan.slots[static_cast<std::size_t>(first[i])].offset;
}

}  // namespace weft
