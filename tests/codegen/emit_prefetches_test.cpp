// The prefetches of a row program's loops for later iterations and rows.

#include "codegen/emit_prefetches.h"

#include <gtest/gtest.h>

#include "codegen/row_text.h"
#include "tests/codegen/doubled_rows.h"

namespace weft::emit_prefetches_test {

// Codes of x / its largest, after `work` more operations; of f32 or bf16.
RowProgram scaled(int work, DType dtype) {
  RowProgram program;
  program.columns = 4096;
  program.buffers = {{.dtype = dtype, .row_stride = 4096}, {.dtype = DType::i8, .is_output = true, .row_stride = 4096}};
  const int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  const int largest = program.add({.op = RowOp::row_max, .a = program.add({.op = RowOp::abs, .a = x})});
  int value = program.add({.op = RowOp::mul, .a = x, .b = largest});
  for (int i = 0; i < work; ++i) value = program.add({.op = RowOp::add, .a = value, .b = value});
  program.stores.push_back(
      {1, program.add({.op = RowOp::convert, .a = value, .dtype = DType::i8}), RowDomain::element});
  program.finish();
  return program;
}

// The sum of a row, whose elements take `work` operations.
RowProgram summed(int work, DType dtype) {
  RowProgram program;
  program.columns = 4096;
  program.buffers = {{.dtype = dtype, .row_stride = 4096}, {.is_output = true, .row_stride = 1}};
  int value = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  for (int i = 0; i < work; ++i) value = program.add({.op = RowOp::add, .a = value, .b = value});
  program.stores.push_back({1, program.add({.op = RowOp::row_sum, .a = value}), RowDomain::row});
  program.finish();
  return program;
}

TEST(FetchingLevels, AreALaterOneThatTakesLong) {
  EXPECT_EQ(fetching_levels(scaled(20, DType::f32)), std::vector<int>{1});
  EXPECT_TRUE(fetching_levels(scaled(0, DType::f32)).empty());
}

TEST(FetchingLevels, TakeLessWorkWhereLessIsFetched) {
  EXPECT_EQ(fetching_levels(scaled(4, DType::bf16)), std::vector<int>{1});
  EXPECT_TRUE(fetching_levels(scaled(4, DType::f32)).empty());
}

TEST(FetchingLevels, AreNoneWhereThereIsOneLevel) { EXPECT_TRUE(fetching_levels(doubled_rows(64, 100)).empty()); }

// x times the largest result of `first` operations, summed; the sum is followed by 20 more operations.
RowProgram of_three_levels(int first) {
  RowProgram program;
  program.columns = 4096;
  program.buffers = {{.row_stride = 4096}, {.is_output = true, .row_stride = 4096}};
  const int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  int value = x;
  for (int i = 0; i < first; ++i) value = program.add({.op = RowOp::add, .a = value, .b = value});
  const int largest = program.add({.op = RowOp::row_max, .a = program.add({.op = RowOp::abs, .a = value})});
  value = program.add({.op = RowOp::mul, .a = x, .b = largest});
  value = program.add({.op = RowOp::mul, .a = value, .b = program.add({.op = RowOp::row_sum, .a = value})});
  for (int i = 0; i < 20; ++i) value = program.add({.op = RowOp::add, .a = value, .b = value});
  program.stores = {{1, value, RowDomain::element}};
  program.finish();
  return program;
}

TEST(FetchingLevels, AreBothOfTwoLaterOnes) {
  const RowProgram program = of_three_levels(1);
  EXPECT_EQ(fetching_levels(program), (std::vector<int>{1, 2}));
  const std::string text = row_text(program, 8);
  for (const char* line :
       {"__builtin_prefetch(b0 + (column) / 2 + 4096);", "__builtin_prefetch(b0 + (column) / 2 + 2048 + 4096);"})
    EXPECT_NE(text.find(line), std::string::npos) << text;
}

TEST(FetchingLevels, AreNoneWhereTheFirstTakesLonger) { EXPECT_TRUE(fetching_levels(of_three_levels(40)).empty()); }

TEST(FetchesAhead, WhereMuchIsComputedForWhatIsReadAndNoLaterLevelFetches) {
  EXPECT_TRUE(fetches_ahead(scaled(4, DType::f32)));
  EXPECT_FALSE(fetches_ahead(scaled(20, DType::f32))) << "level 1 fetches the next row";
  EXPECT_TRUE(fetches_ahead(summed(4, DType::f32)));
  EXPECT_FALSE(fetches_ahead(summed(1, DType::f32)));
  EXPECT_TRUE(fetches_ahead(summed(0, DType::bf16))) << "they are decoded, and are half as long";
}

// 32 cache lines after the current position: in elements of each type.
TEST(FetchesAhead, IsTwoKibibytesAhead) {
  EXPECT_NE(row_text(scaled(4, DType::f32), 8).find("__builtin_prefetch(b0 + column + 512);"), std::string::npos);
  EXPECT_NE(row_text(summed(0, DType::bf16), 8).find("__builtin_prefetch(b0 + column + 1024);"), std::string::npos);
}

// A row of gates, followed by one of the values that they multiply: after the last column is the first one of the next
// row.
TEST(FetchesAhead, GoesOnInTheNextRow) {
  RowProgram program;
  program.columns = 4096;
  program.buffers = {{.row_stride = 8192}, {.row_stride = 8192}, {.is_output = true, .row_stride = 4096}};
  const int gate = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  const int up = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 1});
  const int act = program.add({.op = RowOp::sigmoid, .a = gate});
  program.stores = {{2, program.add({.op = RowOp::mul, .a = act, .b = up}), RowDomain::element}};
  program.finish();
  EXPECT_NE(row_text(program, 8).find("__builtin_prefetch(b0 + column + 512 + (column + 512 >= 4096 ? 4096 : 0));"),
            std::string::npos)
      << row_text(program, 8);
}

// Two alternating loads belong to one stream; each has half the columns of its cache lines.
TEST(FetchesAhead, TakesEveryOtherColumnForAStream) {
  RowProgram program;
  program.columns = 4096;
  program.buffers = {{.row_stride = 8192, .placement = {.stride = 2}}, {.is_output = true, .row_stride = 4096}};
  const int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  program.stores = {{1, program.add({.op = RowOp::sigmoid, .a = x}), RowDomain::element}};
  program.finish();
  const std::string text = row_text(program, 8);
  for (const char* line :
       {"__builtin_prefetch(b0 + (column + 256) * 2);", "__builtin_prefetch(b0 + (column + 264) * 2);"})
    EXPECT_NE(text.find(line), std::string::npos) << text;
}

TEST(FetchesAhead, TakesNeighboursForOneStream) {
  RowProgram program;
  program.columns = 4096;
  program.buffers = {{.dtype = DType::bf16, .row_stride = 8192, .placement = {.stride = 2}},
                     {.dtype = DType::bf16, .row_stride = 8192, .placement = {.stride = 2}, .interleaved_with = 0},
                     {.is_output = true, .row_stride = 4096}};
  const int gate = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  const int up = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 1});
  program.stores = {{2, program.add({.op = RowOp::mul, .a = gate, .b = up}), RowDomain::element}};
  program.finish();
  EXPECT_EQ(streams_of_first_level(program), (std::vector<int>{0, 2}));
  EXPECT_EQ(bits_of_first_level(program), 2 * 16 + 32);
}

// If columns were farther apart, each would be in a cache line of its own.
TEST(FetchesAhead, LeavesColumnsThatLieFarApart) {
  RowProgram program;
  program.columns = 64;
  program.buffers = {{.row_stride = 64 * 100, .placement = {.stride = 100}}, {.is_output = true, .row_stride = 64}};
  const int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  program.stores = {{1, program.add({.op = RowOp::sigmoid, .a = x}), RowDomain::element}};
  program.finish();
  EXPECT_EQ(streams_of_first_level(program), std::vector<int>{1});
  EXPECT_EQ(row_text(program, 8).find("__builtin_prefetch(b0"), std::string::npos);
}

// The output of the first level is fetched with its inputs; weights, which all rows share, are not.
TEST(FetchingLevels, FetchTheStreamsOfTheFirstLevel) {
  RowProgram program;
  program.columns = 64;
  program.buffers = {{.row_stride = 64},
                     {.row_stride = 0},
                     {.is_output = true, .row_stride = 64},
                     {.is_output = true, .row_stride = 64}};
  const int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  const int weight = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 1});
  const int product = program.add({.op = RowOp::mul, .a = x, .b = weight});
  const int sum = program.add({.op = RowOp::row_sum, .a = product});
  program.stores = {{2, product, RowDomain::element},
                    {3, program.add({.op = RowOp::mul, .a = product, .b = sum}), RowDomain::element}};
  program.finish();
  EXPECT_EQ(streams_of_first_level(program), (std::vector<int>{0, 2}));
}

}  // namespace weft::emit_prefetches_test
