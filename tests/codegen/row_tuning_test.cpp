// The variants of a row program have the same bits, however they are cut.

#include "codegen/row_tuning.h"

#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "codegen/compile_rows.h"
#include "codegen/interpret_row_program.h"
#include "codegen/row_text.h"
#include "runtime/loaded_code.h"
#include "tensor/device.h"
#include "tests/codegen/random_rows.h"

namespace weft::row_tuning_test {

constexpr std::int64_t kRows = 3;

// a * b, element by element, and the largest of each group of 32.
RowProgram by_groups(std::int64_t columns) {
  RowProgram program;
  program.columns = columns;
  program.group = 32;
  program.buffers = {{.dtype = DType::f32, .row_stride = columns + 8},
                     {.dtype = DType::f32, .row_stride = 0},
                     {.dtype = DType::f32, .is_output = true, .row_stride = columns},
                     {.dtype = DType::f32, .is_output = true, .row_stride = columns / 32}};
  const int a = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  const int b = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 1});
  const int product = program.add({.op = RowOp::mul, .a = a, .b = b});
  const int magnitude = program.add({.op = RowOp::abs, .a = product});
  const int largest = program.add({.op = RowOp::group_max, .a = magnitude});
  program.stores = {{.buffer = 2, .value = product, .domain = RowDomain::element},
                    {.buffer = 3, .value = largest, .domain = RowDomain::group}};
  program.finish();
  return program;
}

std::vector<RowTuning> tunings_to_try() {
  return {{.unroll = 2}, {.unroll = 4}, {.parts = 2}, {.unroll = 2, .parts = 3}, {.parts = 5}};
}

TEST(RowTuningText, ReadsBackAndNamesTheFunction) {
  const RowProgram program = by_groups(640);
  std::vector<std::string> names{program.name()};
  for (const RowTuning& tuning : {RowTuning{.unroll = 2}, {.parts = 2}, {.chunks = 1}, {.unroll = 4, .chunks = 8}}) {
    EXPECT_EQ(parse_row_tuning(tuning.text()), tuning);
    names.push_back(tuned_program(program, tuning)->kernel_name());
  }
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(tuned_program(program, {})->kernel_name(), program.name());
  EXPECT_EQ(tuned_program(program, {.chunks = 3})->name(), program.name()) << "one code, whatever the chunks";
  EXPECT_EQ(parse_row_tuning("default"), RowTuning());
  EXPECT_EQ(RowTuning().text(), "default");
  for (const char* text : {"", "unroll", "unroll=", "unroll=x", "unroll=0", "unroll=5", "parts=-1", "chunks=1 unroll=2",
                           "unroll=1", "unroll=2 unroll=2", "rows=2", "chunks=99999999999999999999"})
    EXPECT_THROW(parse_row_tuning(text), UserError) << text;
}

TEST(RowParts, AreRefusedWhereARowIsOne) {
  EXPECT_TRUE(tuned_program(by_groups(640), {.parts = 2}));
  EXPECT_TRUE(tuned_program(by_groups(640), {.parts = 20}));
  EXPECT_FALSE(tuned_program(by_groups(640), {.parts = 3})) << "groups would be cut";
  RowProgram sum;
  sum.columns = 128;
  sum.buffers = {{.row_stride = 128}, {.is_output = true, .row_stride = 128}};
  const int x = sum.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  const int total = sum.add({.op = RowOp::row_sum, .a = x});
  const int share = sum.add({.op = RowOp::div, .a = x, .b = total});
  sum.stores = {{.buffer = 1, .value = share, .domain = RowDomain::element}};
  sum.finish();
  EXPECT_FALSE(tuned_program(sum, {.parts = 2})) << "a sum over the row";
  EXPECT_TRUE(tuned_program(sum, {.unroll = 2}));
  RowProgram narrow = by_groups(640);
  narrow.stores[1].domain = RowDomain::row;
  EXPECT_FALSE(tuned_program(narrow, {.parts = 2})) << "a number for the row";
}

TEST(RowParts, AreSmallerRows) {
  const RowProgram program = by_groups(640), parts = *tuned_program(program, {.parts = 5});
  EXPECT_EQ(parts.columns, 128);
  EXPECT_EQ(parts.row_bytes() * 5, program.row_bytes());
  EXPECT_NE(row_text(parts, 16).find("row / 5 * 648 + row % 5 * 128"), std::string::npos);
}

TEST(RowParts, GiveWhatWholeRowsGive) {
  std::mt19937 random(5);
  int compared = 0;
  while (compared < 20) {
    const RowProgram program = random_rows(random, true);
    for (const int parts : {2, 3, 5}) {
      const auto tuned = tuned_program(program, {.parts = parts});
      if (!tuned) continue;
      ++compared;
      const RowBuffers buffers(program, kRows, 9);
      const auto wanted = interpret_row_program(program, buffers.data(), kRows);
      EXPECT_EQ(interpret_row_program(*tuned, buffers.data(), kRows * parts), wanted) << program.text();
    }
  }
}

TEST(RowVariants, AreThoseThatMayPay) {
  const RowProgram program = by_groups(640);
  EXPECT_EQ(unrolled_variants(program), (std::vector<RowTuning>{{.unroll = 2}, {.unroll = 4}}));
  EXPECT_TRUE(unrolled_variants(by_groups(64)).empty());
  EXPECT_TRUE(shared_variants(program, 1, 8, 1).empty()) << "one thread shares nothing";
  EXPECT_EQ(shared_variants(program, 2, 1, 2), (std::vector<RowTuning>{{.unroll = 2, .parts = 2, .chunks = 2}}));
  EXPECT_EQ(shared_variants(program, 1, 64, 2), (std::vector<RowTuning>{{.chunks = 1}, {.chunks = 2}, {.chunks = 8}}));
}

class TunedRows : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  }
  // Compares the results of the default and of the variant; "" if they have the same bits.
  static std::string compared(const RowProgram& program, const RowProgram& tuned) {
    RowBuffers wanted(program, kRows, 3), came(program, kRows, 3);
    run(program, wanted);
    run(tuned, came);
    if (!came.is_intact()) return "it writes past the end of a buffer";
    return difference(program, wanted, came);
  }

 private:
  static void run(const RowProgram& program, RowBuffers& buffers) {
    std::string problem;
    const auto object = compile_rows(program, describe_cpu("", 1).features, problem);
    ASSERT_EQ(problem, "");
    const auto code = LoadedCode::load(object);
    buffers.run(code->find<RowFunction>(program.name()), 0, kRows * program.tuning.parts);
  }
};

TEST_F(TunedRows, GiveTheBitsOfTheDefault) {
  std::mt19937 random(21);
  std::map<int, int> tried;  // by parts
  for (int i = 0; i < 24; ++i) {
    const RowProgram program = i == 0 ? by_groups(640) : random_rows(random, false);
    for (const RowTuning& tuning : tunings_to_try()) {
      const auto tuned = tuned_program(program, tuning);
      if (!tuned) continue;
      ++tried[tuning.parts];
      ASSERT_EQ(compared(program, *tuned), "") << tuned->text();
    }
  }
  EXPECT_GE(tried[1], 48);
  EXPECT_GE(tried[2], 2);
}

}  // namespace weft::row_tuning_test
