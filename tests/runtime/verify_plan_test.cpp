// A Plan that reads a value that does not exist, or no longer exists, is refused.

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/pipeline.h"
#include "tests/small_layer.h"

namespace weft::verify_plan_test {

class VerifyPlanTest : public testing::Test {
 protected:
  VerifyPlanTest() {
    const auto context = test_context();
    context_ = context;
    plan_ = *compile(*small_layer(*context), *context, {1, 8}, {}).plan;
  }

  std::string error() const {
    try {
      verify_plan(plan_);
    } catch (const InternalError& error) {
      return error.what();
    }
    return "";
  }

  // The first step that overwrites an argument, and the operand that it overwrites.
  std::pair<PlanStep*, PlanView*> first_overwrite() {
    for (PlanStep& step : plan_.steps)
      for (PlanView& result : step.results)
        for (PlanView& operand : step.operands)
          if (operand.slot == result.slot && result.version > 0) return {&step, &operand};
    return {nullptr, nullptr};
  }

  std::shared_ptr<Context> context_;
  Plan plan_;
};

TEST_F(VerifyPlanTest, AcceptsWhatTheCompilerMakes) { EXPECT_EQ(error(), ""); }

TEST_F(VerifyPlanTest, RefusesAStepThatRunsTooEarly) {
  std::rotate(plan_.steps.begin(), plan_.steps.end() - 1, plan_.steps.end());
  EXPECT_NE(error().find("which is not there yet"), std::string::npos) << error();
}

TEST_F(VerifyPlanTest, RefusesToReadWhatALaterVersionWroteOver) {
  auto [step, operand] = first_overwrite();
  ASSERT_NE(step, nullptr);
  plan_.results[0] = *operand;
  EXPECT_NE(error().find("overwrote"), std::string::npos) << error();
}

TEST_F(VerifyPlanTest, AllowsColumnsThatNobodyWroteOver) {
  auto [step, operand] = first_overwrite();
  ASSERT_NE(step, nullptr);
  // Columns 0 to 15 of a matrix of 32 are overwritten; columns 16 to 31 are unchanged.
  const int slot = operand->slot;
  PlanView half = *operand;
  half.meta = Meta::tensor(DType::f32, {Dim::symbol("s0"), 16});
  half.meta.strides = {32, 1};
  PlanView other = half;
  other.byte_offset = 16 * 4;
  for (PlanView& result : step->results)
    if (result.slot == slot) result.meta = half.meta;
  plan_.steps.resize(static_cast<std::size_t>(step - plan_.steps.data()) + 1);
  plan_.results = {other};
  EXPECT_EQ(error(), "");
  plan_.results = {half};
  EXPECT_NE(error().find("overwrote"), std::string::npos) << error();
}

TEST_F(VerifyPlanTest, RefusesToWriteOverWhatWasNotDonated) {
  for (PlanSlot& slot : plan_.slots) slot.donated = false;
  EXPECT_NE(error().find("which was not donated"), std::string::npos) << error();
}

TEST_F(VerifyPlanTest, RefusesAVersionOutOfOrder) {
  auto [step, operand] = first_overwrite();
  ASSERT_NE(step, nullptr);
  for (PlanView& result : step->results)
    if (result.slot == operand->slot) result.version += 1;
  EXPECT_NE(error().find("after version"), std::string::npos) << error();
}

TEST_F(VerifyPlanTest, RefusesPagesThatMoved) {
  PlanView& pages = plan_.results.back();
  ASSERT_EQ(pages.meta.kind, MetaKind::kv);
  plan_.slots.push_back({.kind = SlotKind::input, .name = "other", .meta = pages.meta});
  pages.slot = static_cast<int>(plan_.slots.size()) - 1;
  pages.version = 0;
  EXPECT_NE(error().find("KV pages are returned in slot"), std::string::npos) << error();
}

}  // namespace weft::verify_plan_test
