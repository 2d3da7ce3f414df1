#include "engine/padded_step.h"

#include <gtest/gtest.h>

#include "tensor/batch.h"

namespace weft::padded_step_test {

std::vector<std::int64_t> numbers(std::span<const std::int64_t> values) { return {values.begin(), values.end()}; }

class PaddedStepTest : public ::testing::Test {
 protected:
  // Two sequences of 2 and 1 rows over pages of 4 tokens.
  StepInput step() const {
    StepInput step;
    step.ids = ids_;
    step.positions = positions_;
    step.slots = slots_;
    step.batch = make_batch(starts_, lengths_, table_);
    step.logit_rows = rows_;
    return step;
  }
  const std::vector<std::int64_t> ids_{7, 8, 9}, positions_{4, 5, 0}, slots_{12, 13, 20}, rows_{1, 2};
  const std::vector<std::int32_t> starts_{0, 2, 3}, lengths_{6, 1}, table_{2, 3, 5, 0};
};

TEST_F(PaddedStepTest, HasOneMoreSequenceThatWritesNothing) {
  const PaddedStep padded(step(), 13, 4);
  const StepInput& input = padded.input();
  EXPECT_EQ(numbers(input.ids), (std::vector<std::int64_t>{7, 8, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(numbers(input.positions), (std::vector<std::int64_t>{4, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(numbers(input.slots), (std::vector<std::int64_t>{12, 13, 20, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(numbers(input.logit_rows), rows_);
  const Batch& batch = batch_of(input.batch);
  ASSERT_EQ(batch.sequences, 3);
  EXPECT_EQ(std::vector(batch.query_starts, batch.query_starts + 4), (std::vector<std::int32_t>{0, 2, 3, 13}));
  EXPECT_EQ(std::vector(batch.lengths, batch.lengths + 3), (std::vector<std::int32_t>{6, 1, 10}));
  ASSERT_EQ(batch.max_blocks, 3);  // as many as the last one's 10 rows take
  EXPECT_EQ(std::vector(batch.block_table, batch.block_table + 9),
            (std::vector<std::int32_t>{2, 3, 0, 5, 0, 0, 0, 0, 0}));
  EXPECT_NO_THROW(check_batch(batch, 13, 4, 6));
}

TEST_F(PaddedStepTest, IsTheStepItselfWhereNothingIsMissing) {
  const StepInput given = step();
  const PaddedStep padded(given, 3, 4);
  EXPECT_EQ(padded.input().ids.data(), given.ids.data());
  EXPECT_EQ(padded.input().batch.storage, given.batch.storage);
}

TEST_F(PaddedStepTest, CanBeOfNothingElse) {
  const PaddedStep padded = empty_step(5, 4);
  EXPECT_EQ(padded.input().ids.size(), 5u);
  EXPECT_EQ(batch_of(padded.input().batch).sequences, 1);
  EXPECT_NO_THROW(check_batch(batch_of(padded.input().batch), 5, 4, 1));
  EXPECT_TRUE(padded.input().logit_rows.empty());
}

}  // namespace weft::padded_step_test
