#include "engine/run/step_buffer.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::step_buffer_test {

const std::vector<std::int32_t> kPages{4, 2};

TEST(StepBuffer, HoldsOneStepAfterAnotherWhereTheFirstLay) {
  StepBuffer buffer({.rows = 4, .sequences = 2, .blocks = 3});
  std::byte* ids = nullptr;
  for (const std::int64_t rows : {4, 1, 3}) {
    buffer.begin(3);
    for (std::int64_t row = 0; row < rows; ++row) buffer.add_row(10 + row, row, 64 + row);
    buffer.add_sequence(rows, kPages);
    buffer.want_logits(rows - 1);
    const StepInput& input = buffer.input();
    EXPECT_EQ(input.rows(), rows);
    EXPECT_EQ(input.ids.as<std::int64_t>()[rows - 1], 9 + rows);
    EXPECT_EQ(input.logit_row_count(), 1);
    const Batch& batch = batch_of(input.batch);
    ASSERT_EQ(batch.sequences, 1);
    EXPECT_EQ(batch.query_starts[1], rows);
    EXPECT_EQ(std::vector(batch.block_table, batch.block_table + 3), (std::vector<std::int32_t>{4, 2, 0}));
    EXPECT_NO_THROW(check_batch(batch, rows, 16, 5));
    if (ids == nullptr) ids = input.ids.data();
    EXPECT_EQ(input.ids.data(), ids);
  }
}

TEST(StepBuffer, RefusesMoreThanThereIsMemoryFor) {
  StepBuffer buffer({.rows = 2, .sequences = 1, .blocks = 2});
  EXPECT_THROW(buffer.begin(3), InternalError);
  buffer.begin(1);
  buffer.add_row(0, 0, 0);
  EXPECT_THROW(buffer.add_sequence(1, kPages), InternalError) << "two pages, where one was the most";
  buffer.add_row(0, 1, 1);
  EXPECT_THROW(buffer.add_row(0, 2, 2), InternalError);
  buffer.add_sequence(2, {});
  EXPECT_THROW(buffer.add_sequence(0, {}), InternalError);
  buffer.want_logits(0);
  buffer.want_logits(1);
  EXPECT_THROW(buffer.want_logits(1), InternalError);
}

}  // namespace weft::step_buffer_test
