// The cost of values, and the values that share scratch memory. The random programs and the ops show that no bit
// changes (compile_rows_test.cpp, native_ops_test.cpp).

#include "codegen/row_program.h"

#include <gtest/gtest.h>

#include "tests/codegen/doubled_rows.h"

namespace weft::row_program_test {

// sum = x + y, which waits; scaled = sum * (the sum of its squares), which waits; codes by the sum of scaled's squares.
struct Sums {
  RowProgram program;
  int sum, row_sum, scaled;

  Sums() {
    program.columns = 256;
    for (int i = 0; i < 2; ++i) program.buffers.push_back({.row_stride = 256});
    sum = add({.op = RowOp::add, .a = load(0), .b = load(1)});
    row_sum = sum_of_squares(sum);
    scaled = add({.op = RowOp::mul, .a = sum, .b = row_sum});
  }
  int add(RowValue value) { return program.add(value); }
  int load(int buffer) { return add({.op = RowOp::load, .domain = RowDomain::element, .buffer = buffer}); }
  int sum_of_squares(int value) {
    return add({.op = RowOp::row_sum, .a = add({.op = RowOp::mul, .a = value, .b = value})});
  }
  void give(int value) {
    program.buffers.push_back({.is_output = true, .row_stride = 256});
    program.stores.push_back({static_cast<int>(program.buffers.size()) - 1, value, RowDomain::element});
  }
  void finish() {
    give(add({.op = RowOp::mul, .a = scaled, .b = sum_of_squares(scaled)}));
    program.finish();
  }
  int slot(int value) const { return program.values[static_cast<std::size_t>(value)].slot; }
};

TEST(SlotSharing, TakesTheLastReadValuesPlace) {
  Sums sums;
  sums.finish();
  EXPECT_EQ(sums.slot(sums.sum), 0);
  EXPECT_EQ(sums.slot(sums.scaled), 0);
  EXPECT_EQ(sums.program.scratch_floats, 256);
}

TEST(SlotSharing, LeavesWhatALaterLevelReads) {
  Sums sums;
  sums.give(sums.add({.op = RowOp::mul, .a = sums.sum, .b = sums.sum_of_squares(sums.scaled)}));
  sums.finish();
  EXPECT_NE(sums.slot(sums.sum), sums.slot(sums.scaled));
  EXPECT_EQ(sums.program.scratch_floats, 512);
}

// It would be read again after another value has been stored there.
TEST(SlotSharing, LeavesWhatTheSameLevelReadsForSomethingElse) {
  for (const bool is_reduced : {false, true}) {
    Sums sums;
    const int other = sums.add({.op = RowOp::add, .a = sums.sum, .b = sums.row_sum});
    is_reduced ? sums.give(sums.add({.op = RowOp::add, .a = sums.load(0), .b = sums.sum_of_squares(other)}))
               : sums.give(other);
    sums.finish();
    EXPECT_NE(sums.slot(sums.sum), sums.slot(sums.scaled));
  }
}

TEST(SlotSharing, GivesEachPlaceOnce) {
  Sums sums;
  const int second = sums.add({.op = RowOp::sub, .a = sums.scaled, .b = sums.row_sum});
  sums.give(sums.add({.op = RowOp::mul, .a = second, .b = sums.sum_of_squares(second)}));
  sums.finish();
  EXPECT_EQ(sums.slot(sums.scaled), sums.slot(sums.sum));
  EXPECT_NE(sums.slot(second), sums.slot(sums.scaled));
}

// The cost of recomputing a value counts each of its operands as often as it is read.
TEST(RowProgramCosts, GrowToABound) {
  const RowProgram program = doubled_rows(64, 100);
  for (std::size_t i = 1; i < program.values.size(); ++i)
    EXPECT_GE(program.values[i].cost, program.values[i - 1].cost) << i;
}

}  // namespace weft::row_program_test
