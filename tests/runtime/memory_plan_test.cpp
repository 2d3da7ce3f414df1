#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/plan.h"

namespace weft::memory_plan_test {

// A Plan of one input and of steps, each making one arena slot of rows of f32 from others.
class Steps {
 public:
  Steps() {
    plan_.bounds["s0"] = {1, 64};
    plan_.slots.push_back({.kind = SlotKind::input, .meta = meta(16)});
    over_.may_lie_over = {0};
  }

  // Over its first operand where it may. Gives the slot.
  int add(const std::vector<int>& operands, std::int64_t columns = 16, std::int64_t byte_offset = 0) {
    const int slot = static_cast<int>(plan_.slots.size());
    plan_.slots.push_back({.kind = SlotKind::arena, .bytes = Dim::symbol("s0") * Dim(4 * columns)});
    PlanStep step{.op = "op", .kernel = &over_};
    for (const int operand : operands)
      step.operands.push_back({.slot = operand, .byte_offset = byte_offset, .meta = meta(columns)});
    step.results.push_back({.slot = slot, .meta = meta(columns)});
    plan_.steps.push_back(step);
    return slot;
  }
  void give(int slot) { plan_.results.push_back({.slot = slot, .meta = meta(16)}); }
  std::int64_t offset(int slot) const { return plan_.slots[static_cast<std::size_t>(slot)].offset; }
  void plan() { plan_memory(plan_); }
  std::int64_t bytes() const { return plan_.arena_bytes; }

 private:
  static Meta meta(std::int64_t columns) { return Meta::tensor(DType::f32, {Dim::symbol("s0"), columns}); }

  Kernel over_;
  Plan plan_;
};

constexpr std::int64_t kBytes = 64 * 16 * 4;

TEST(MemoryPlan, PutsAResultWhereItsOperandIsReadForTheLastTime) {
  Steps steps;
  const int a = steps.add({0}), b = steps.add({a}), c = steps.add({b, 0});
  steps.give(c);
  steps.plan();
  EXPECT_EQ(steps.offset(a), steps.offset(b));
  EXPECT_EQ(steps.offset(b), steps.offset(c));
  EXPECT_EQ(steps.bytes(), kBytes);
}

TEST(MemoryPlan, LeavesWhatIsReadLaterOrOtherwise) {
  const auto lie_together = [](const std::function<std::pair<int, int>(Steps&)>& make) {
    Steps steps;
    const auto [under, over] = make(steps);
    steps.plan();
    return steps.offset(under) == steps.offset(over);
  };
  EXPECT_TRUE(lie_together([](Steps& steps) {
    const int a = steps.add({0});
    return std::pair(a, steps.add({a}));
  }));
  EXPECT_FALSE(lie_together([](Steps& steps) {  // by a later step
    const int a = steps.add({0}), b = steps.add({a});
    steps.add({a, b});
    return std::pair(a, b);
  }));
  EXPECT_FALSE(lie_together([](Steps& steps) {  // by the caller
    const int a = steps.add({0}), b = steps.add({a});
    steps.give(a);
    return std::pair(a, b);
  }));
  EXPECT_FALSE(lie_together([](Steps& steps) {  // by the same step as another operand
    const int a = steps.add({0});
    return std::pair(a, steps.add({a, a}));
  }));
  EXPECT_FALSE(lie_together([](Steps& steps) {  // a part of a wider one
    const int a = steps.add({0}, 32);
    return std::pair(a, steps.add({a}, 16));
  }));
  EXPECT_FALSE(lie_together([](Steps& steps) {  // not from its beginning
    const int a = steps.add({0});
    return std::pair(a, steps.add({a}, 16, 64));
  }));
}

// The whole of what lies in one place keeps others out.
TEST(MemoryPlan, KeepsOthersOutAsLongAsAnyOfThemIsThere) {
  Steps steps;
  const int a = steps.add({0}), other = steps.add({0}), b = steps.add({a}), c = steps.add({b});
  steps.give(steps.add({other, c}));
  steps.plan();
  EXPECT_EQ(steps.offset(a), steps.offset(c));
  EXPECT_NE(steps.offset(other), steps.offset(a));
  EXPECT_EQ(steps.bytes(), 2 * kBytes);
}

}  // namespace weft::memory_plan_test
