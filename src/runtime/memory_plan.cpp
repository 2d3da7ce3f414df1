#include <algorithm>
#include <utility>

#include "base/error.h"
#include "runtime/plan.h"

namespace weft {
namespace {

constexpr std::int64_t kAlignment = 64;  // a cache line, and the widest vector

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::int64_t upper_bound(const Dim& bytes, const Bounds& bounds) {
  const Interval range = bytes.range(bounds);
  CHECK(range.hi <= INT64_MAX - kAlignment, "the size {} has no upper bound", bytes.text());
  return range.hi;
}

std::int64_t checked_sum(std::int64_t bytes, std::int64_t more, const Plan& plan) {
  std::int64_t sum = 0;
  USER_CHECK(!__builtin_add_overflow(bytes, more, &sum),
             "[{}] its values take 2^63 bytes or more at the upper bounds of their sizes", plan.name);
  return sum;
}

// A piece of the arena: for one slot, for several slots that use it one after another, or for the scratch of a step.
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

// The slot of the operand whose memory the result may reuse, or -1. The operand is an arena slot of the same size,
// which no later step reads and which this step reads only once.
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

// By slot: the first of the slots that share its memory one after another, or the slot itself if it shares none.
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

std::vector<Block> slot_blocks(Plan& plan, const std::vector<int>& first) {
  std::vector<Block> blocks;
  std::vector<int> block_of(first.size(), -1);  // by first slot
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    const PlanSlot& slot = plan.slots[i];
    if (slot.kind != SlotKind::arena || slot.first_step < 0) continue;
    const std::int64_t bytes = aligned(upper_bound(slot.bytes, plan.bounds));
    plan.unshared_bytes = checked_sum(plan.unshared_bytes, bytes, plan);
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
  plan.unshared_bytes = checked_sum(plan.unshared_bytes, largest, plan);
}

// The most bytes that are live during one step: no arena can be smaller.
std::int64_t most_together(const std::vector<Block>& blocks, int steps) {
  std::vector<std::int64_t> change(static_cast<std::size_t>(steps) + 1, 0);
  for (const Block& block : blocks) {
    change[static_cast<std::size_t>(block.first_step)] += block.bytes;
    change[static_cast<std::size_t>(block.last_step) + 1] -= block.bytes;
  }
  std::int64_t now = 0, most = 0;
  for (const std::int64_t more : change) most = std::max(most, now += more);
  return most;
}

// Blocks that have an offset, by the steps in which they are live.
class Placed {
 public:
  explicit Placed(int steps) : there_(static_cast<std::size_t>(steps)), beginning_(there_.size()) {}

  void add(const Block& block) {
    beginning_[static_cast<std::size_t>(block.first_step)].push_back(&block);
    for (int step = block.first_step; step <= block.last_step; ++step)
      there_[static_cast<std::size_t>(step)].push_back(&block);
  }
  // The placed blocks that are live at the same time as the block. The list is valid until the next call.
  std::vector<const Block*>& beside(const Block& block) {
    found_ = there_[static_cast<std::size_t>(block.first_step)];
    for (int step = block.first_step + 1; step <= block.last_step; ++step) {
      const auto& more = beginning_[static_cast<std::size_t>(step)];
      found_.insert(found_.end(), more.begin(), more.end());
    }
    return found_;
  }

 private:
  std::vector<std::vector<const Block*>> there_, beginning_;  // by step
  std::vector<const Block*> found_;
};

std::int64_t lowest_offset(std::int64_t bytes, std::vector<const Block*>& beside) {
  std::sort(beside.begin(), beside.end(), [](const Block* a, const Block* b) { return a->offset < b->offset; });
  std::int64_t offset = 0;
  for (const Block* other : beside) {
    if (offset + bytes <= other->offset) break;
    offset = std::max(offset, other->offset + other->bytes);
  }
  return offset;
}

// Negative if the block fits nowhere below `end`.
std::int64_t highest_offset(std::int64_t bytes, std::vector<const Block*>& beside, std::int64_t end) {
  const auto end_of = [](const Block* block) { return block->offset + block->bytes; };
  std::sort(beside.begin(), beside.end(), [&](const Block* a, const Block* b) { return end_of(a) > end_of(b); });
  std::int64_t offset = end - bytes;
  for (const Block* other : beside) {
    if (end_of(other) <= offset) break;
    offset = std::min(offset, other->offset - bytes);
  }
  return offset;
}

// Where a block is placed. Each layer's residual is made while the previous layer's one is live. If they alternate
// between the two ends of the arena, the space between them stays in one part.
enum class Gap : std::uint8_t {
  lowest,
  highest,  // but 0 if the block fits there
  outer,    // the lowest or the highest, whichever is nearer to its end of the arena
};
constexpr Gap kGaps[] = {Gap::lowest, Gap::highest, Gap::outer};

std::int64_t offset_in(Gap gap, std::int64_t bytes, std::vector<const Block*>& beside, std::int64_t end) {
  const std::int64_t low = lowest_offset(bytes, beside);
  if (gap == Gap::lowest || low == 0) return low;
  const std::int64_t high = highest_offset(bytes, beside, end);
  return high < 0 || (gap == Gap::outer && low <= end - (high + bytes)) ? low : high;
}

std::int64_t steps_of(const Block& block) { return block.last_step - block.first_step + 1; }
double area_of(const Block& block) { return static_cast<double>(block.bytes) * static_cast<double>(steps_of(block)); }

// Returns whether block a is placed before block b. Among blocks of one size, the one with the longest lifetime is
// placed first, because it fits into the fewest gaps.
using Order = bool (*)(const Block&, const Block&);
constexpr Order kOrders[] = {
    [](const Block& a, const Block& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : steps_of(a) > steps_of(b); },
    [](const Block& a, const Block& b) { return area_of(a) > area_of(b); },
    [](const Block& a, const Block& b) {
      return steps_of(a) != steps_of(b) ? steps_of(a) > steps_of(b) : a.bytes > b.bytes;
    },
    [](const Block& a, const Block& b) {
      return steps_of(a) != steps_of(b) ? steps_of(a) > steps_of(b) : a.first_step < b.first_step;
    },
};

// Gives each block its offset, in their order, and returns the highest end of a block. `looked_at` counts the placed
// blocks that were compared with a new one.
std::int64_t place(std::vector<Block>& blocks, Gap gap, int steps, std::int64_t wanted_end, std::size_t& looked_at) {
  Placed placed(steps);
  std::int64_t end = 0;
  for (Block& block : blocks) {
    std::vector<const Block*>& beside = placed.beside(block);
    looked_at += beside.size();
    block.offset = offset_in(gap, block.bytes, beside, wanted_end);
    end = std::max(end, block.offset + block.bytes);
    placed.add(block);
  }
  return end;
}

// Tries each order with each gap and keeps the first of the smallest results. It stops when nothing can be smaller, or
// after some milliseconds, which happens when thousands of values live to the end. No single choice is best: for 54
// plans of models, "largest first, lowest gap" leaves 16 plans between 2 and 14 % above the most bytes that are live at
// once, and all choices together leave none.
std::int64_t place_best(std::vector<Block>& blocks, int steps) {
  const std::int64_t least = most_together(blocks, steps);
  const std::vector<Block> as_given = blocks;
  std::vector<Block> best;
  std::int64_t best_end = INT64_MAX;
  constexpr std::size_t kMostLookedAt = 1'000'000;
  std::size_t looked_at = 0;
  for (const Order order : kOrders) {
    std::vector<Block> ordered = as_given;
    std::stable_sort(ordered.begin(), ordered.end(), order);
    for (const Gap gap : kGaps) {
      if (best_end == least || looked_at > kMostLookedAt) break;
      const std::int64_t end = place(ordered, gap, steps, least, looked_at);
      if (end >= best_end) continue;
      best = ordered;
      best_end = end;
    }
  }
  blocks = std::move(best);
  return best_end;
}

}  // namespace

void plan_memory(Plan& plan) {
  find_lifetimes(plan);
  const std::vector<int> first = first_in_place(plan);
  plan.unshared_bytes = 0;
  std::vector<Block> blocks = slot_blocks(plan, first);
  add_scratch(plan, blocks);
  std::int64_t all = 0;  // an upper bound of each partial sum and of each block's end
  for (const Block& block : blocks) all = checked_sum(all, block.bytes, plan);
  plan.arena_bytes = place_best(blocks, static_cast<int>(plan.steps.size()) + 1);
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
