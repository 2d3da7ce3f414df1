#include "engine/run/padded_step.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::padded_step_test {

std::vector<std::int64_t> numbers(const Tensor& values) {
  const auto* const begin = values.as<const std::int64_t>();
  return {begin, begin + values.meta.shape[0].number()};
}

class PaddedStepTest : public ::testing::Test {
 protected:
  // Two sequences of 2 and 1 rows over pages of 4 tokens.
  PaddedStepTest() {
    given_.begin(2);
    given_.add_row(7, 4, 12);
    given_.add_row(8, 5, 13);
    given_.add_sequence(6, std::vector<std::int32_t>{2, 3});
    given_.add_row(9, 0, 20);
    given_.add_sequence(1, std::vector<std::int32_t>{5});
    given_.want_logits(1);
    given_.want_logits(2);
  }
  StepBuffer given_{{.rows = 3, .sequences = 2, .blocks = 2}};
  StepBuffer padded_{{.rows = 13, .sequences = 3, .blocks = 3}};
};

TEST_F(PaddedStepTest, HasOneMoreSequenceThatWritesNothing) {
  const StepInput& input = padded_step(given_.input(), 13, 4, padded_);
  EXPECT_EQ(numbers(input.ids), (std::vector<std::int64_t>{7, 8, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(numbers(input.positions), (std::vector<std::int64_t>{4, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(numbers(input.slots), (std::vector<std::int64_t>{12, 13, 20, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(numbers(input.logit_rows), (std::vector<std::int64_t>{1, 2}));
  const Batch& batch = batch_of(input.batch);
  ASSERT_EQ(batch.sequences, 3);
  EXPECT_EQ(std::vector(batch.query_starts, batch.query_starts + 4), (std::vector<std::int32_t>{0, 2, 3, 13}));
  EXPECT_EQ(std::vector(batch.lengths, batch.lengths + 3), (std::vector<std::int32_t>{6, 1, 10}));
  ASSERT_EQ(batch.max_blocks, 3);  // the number that the last one's 10 rows take
  EXPECT_EQ(std::vector(batch.block_table, batch.block_table + 9),
            (std::vector<std::int32_t>{2, 3, 0, 5, 0, 0, 0, 0, 0}));
  EXPECT_NO_THROW(check_batch(batch, 13, 4, 6));
}

TEST_F(PaddedStepTest, IsTheStepItselfWhereNothingIsMissing) {
  const StepInput& given = given_.input();
  EXPECT_EQ(&padded_step(given, 3, 4, padded_), &given);
}

TEST_F(PaddedStepTest, CanBeOfNothingElse) {
  padded_step(given_.input(), 13, 4, padded_);  // of which nothing stays
  StepBuffer nothing(StepLimits{});
  nothing.begin(0);
  const StepInput& empty = padded_step(nothing.input(), 5, 4, padded_);
  EXPECT_EQ(empty.rows(), 5);
  EXPECT_EQ(batch_of(empty.batch).sequences, 1);
  EXPECT_NO_THROW(check_batch(batch_of(empty.batch), 5, 4, 1));
  EXPECT_EQ(empty.logit_row_count(), 0);
}

class PaddedDecodeStepTest : public ::testing::Test {
 protected:
  // A sequence of 5 tokens on pages of 4 and one of 1; only the second needs logits.
  PaddedDecodeStepTest() {
    given_.begin(2);
    given_.add_row(7, 4, 12);
    given_.add_sequence(5, std::vector<std::int32_t>{2, 3});
    given_.add_row(9, 0, 20);
    given_.add_sequence(1, std::vector<std::int32_t>{5});
    given_.want_logits(1);
  }
  StepBuffer given_{{.rows = 2, .sequences = 2, .blocks = 2}};
  StepBuffer padded_{{.rows = 4, .sequences = 4, .blocks = 3}};
};

TEST_F(PaddedDecodeStepTest, HasASequenceOfOneTokenForEachMissingRow) {
  const StepInput& input = padded_decode_step(given_.input(), 4, 3, padded_);
  EXPECT_EQ(numbers(input.ids), (std::vector<std::int64_t>{7, 9, 0, 0}));
  EXPECT_EQ(numbers(input.positions), (std::vector<std::int64_t>{4, 0, 0, 0}));
  EXPECT_EQ(numbers(input.slots), (std::vector<std::int64_t>{12, 20, -1, -1}));
  EXPECT_EQ(numbers(input.logit_rows), (std::vector<std::int64_t>{1, 0, 0, 0}));
  const Batch& batch = batch_of(input.batch);
  ASSERT_EQ(batch.sequences, 4);
  EXPECT_EQ(std::vector(batch.query_starts, batch.query_starts + 5), (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(std::vector(batch.lengths, batch.lengths + 4), (std::vector<std::int32_t>{5, 1, 1, 1}));
  ASSERT_EQ(batch.max_blocks, 3);
  EXPECT_EQ(std::vector(batch.block_table, batch.block_table + 12),
            (std::vector<std::int32_t>{2, 3, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_NO_THROW(check_batch(batch, 4, 4, 6));
}

// Also if no row is missing, so that a size has the numbers of only one batch.
TEST_F(PaddedDecodeStepTest, HasTheNumbersOfItsSizeWhateverItIsMadeOf) {
  StepBuffer nothing(StepLimits{});
  nothing.begin(0);
  for (StepBuffer* from : {&given_, &nothing}) {
    const StepInput& input = padded_decode_step(from->input(), 2, 3, padded_);
    EXPECT_EQ(input.rows(), 2);
    EXPECT_EQ(input.logit_row_count(), 2);
    EXPECT_EQ(batch_of(input.batch).sequences, 2);
    EXPECT_EQ(batch_of(input.batch).max_blocks, 3);
  }
}

TEST_F(PaddedDecodeStepTest, IsNotOfAPrompt) {
  given_.begin(1);
  given_.add_row(7, 0, 0);
  given_.add_row(8, 1, 1);
  given_.add_sequence(2, std::vector<std::int32_t>{0});
  EXPECT_FALSE(is_decode_step(given_.input()));
  EXPECT_THROW(padded_decode_step(given_.input(), 4, 3, padded_), InternalError);
}

}  // namespace weft::padded_step_test
