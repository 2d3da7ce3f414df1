// Copied inputs have the same address in every run, and give the same results.

#include "runtime/stable_inputs.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/pipeline.h"
#include "runtime/replay.h"
#include "tests/small_layer.h"

namespace weft::stable_inputs_test {

class StableInputsTest : public testing::Test {
 protected:
  StableInputsTest() : context_(test_context()), traced_(small_layer(*context_)) {
    plan_ = compile(*traced_->clone(), *context_, {1, 8}, {}).plan;
  }

  // Results of a run; with `stable`, of copies of the inputs.
  std::vector<std::vector<double>> run(int rows, StableInputs* stable) {
    Replay replay(plan_, *context_->threads);
    std::vector<Tensor> inputs = layer_inputs(*traced_, rows).copies();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (stable != nullptr) inputs[i] = stable->place(i, inputs[i]);
      addresses_[i].push_back(inputs[i].data());
      replay.bind(i, inputs[i]);
    }
    replay.run();
    std::vector<std::vector<double>> results;
    for (std::size_t i = 0; i < plan_->results.size(); ++i) results.push_back(elements_of(replay.result(i)));
    return results;
  }

  std::shared_ptr<Context> context_;
  std::shared_ptr<Graph> traced_;
  std::shared_ptr<const Plan> plan_;
  std::map<std::size_t, std::vector<std::byte*>> addresses_;  // by input: its address in each run
};

TEST_F(StableInputsTest, StayInPlaceAndGiveTheSame) {
  StableInputs stable(*plan_, 1, 4);
  EXPECT_GT(stable.bytes(), 0);
  for (const int rows : {1, 8, 3}) {
    const auto wanted = run(rows, nullptr);
    addresses_.clear();
    EXPECT_EQ(run(rows, &stable), wanted) << rows;
    run(8, &stable);
    for (std::size_t i = 0; i < plan_->inputs.size(); ++i) {
      const PlanSlot& slot = plan_->slots[static_cast<std::size_t>(plan_->inputs[i])];
      if (slot.kind != SlotKind::input || slot.donated) continue;
      EXPECT_EQ(addresses_[i][0], addresses_[i][1]) << slot.name;
    }
  }
}

TEST_F(StableInputsTest, LeavesWhatIsWrittenOverWhereItIs) {
  StableInputs stable(*plan_, 1, 4);
  const std::vector<Tensor> inputs = layer_inputs(*traced_, 2).copies();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const PlanSlot& slot = plan_->slots[static_cast<std::size_t>(plan_->inputs[i])];
    const bool is_copied = slot.kind == SlotKind::input && !slot.donated;
    EXPECT_EQ(stable.place(i, inputs[i]).data() != inputs[i].data(), is_copied) << slot.name;
  }
}

TEST_F(StableInputsTest, RefusesMoreThanThereIsMemoryFor) {
  StableInputs small(*plan_, 1, 1), large(*plan_, 1, 4);
  std::size_t refused = 0;
  const std::vector<Tensor> most = layer_inputs(*traced_, 8).copies(), more = layer_inputs(*traced_, 9).copies();
  for (std::size_t i = 0; i < most.size(); ++i) {
    const PlanSlot& slot = plan_->slots[static_cast<std::size_t>(plan_->inputs[i])];
    if (slot.kind != SlotKind::input || slot.donated) continue;
    EXPECT_NO_THROW(large.place(i, most[i])) << slot.name;
    const bool is_batch = slot.meta.kind == MetaKind::batch;
    EXPECT_THROW((is_batch ? small : large).place(i, (is_batch ? most : more)[i]), InternalError) << slot.name;
    ++refused;
  }
  EXPECT_EQ(refused, 3u);  // positions, slots and the batch
}

}  // namespace weft::stable_inputs_test
