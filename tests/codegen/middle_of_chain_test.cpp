// Where a loop is cut in two halves that are software-pipelined. The random programs show that no bit changes
// (compile_rows_test.cpp).

#include "codegen/middle_of_chain.h"

#include <gtest/gtest.h>

#include "tensor/arithmetic_cost.h"
#include "tests/codegen/doubled_rows.h"

namespace weft::middle_of_chain_test {

// silu(x) * y as codes by a scale, of bf16: load, divisor, div, convert, load, mul, convert; scale, mul, convert.
struct Coded {
  RowProgram program;
  int divisor, silu, product, rounded, code;

  Coded() {
    program.columns = 256;
    for (int i = 0; i < 2; ++i) program.buffers.push_back({.dtype = DType::bf16, .row_stride = 256});
    program.buffers.push_back({.dtype = DType::f8e4m3, .is_output = true, .row_stride = 256});
    const int x = add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
    divisor = add({.op = RowOp::silu_divisor, .a = x});
    silu = add({.op = RowOp::convert, .a = add({.op = RowOp::div, .a = x, .b = divisor}), .dtype = DType::bf16});
    const int y = add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 1});
    product = add({.op = RowOp::mul, .a = silu, .b = y});
    rounded = add({.op = RowOp::convert, .a = product, .dtype = DType::bf16});
    const int scaled = add({.op = RowOp::mul, .a = rounded, .b = add({.op = RowOp::constant, .number = 0.5})});
    code = add({.op = RowOp::convert, .a = scaled, .dtype = DType::f8e4m3});
    store(2, code);
  }
  int add(RowValue value) { return program.add(value); }
  void store(int buffer, int value) { program.stores.push_back({buffer, value, RowDomain::element}); }
  void give(DType dtype, int value) {
    program.buffers.push_back({.dtype = dtype, .is_output = true, .row_stride = 256});
    store(static_cast<int>(program.buffers.size()) - 1, value);
  }
  int middle() {
    program.finish();
    return middle_of_chain(program, 0, 16);
  }
};

TEST(MiddleOfChain, HasTwoHalvesAsLikeAsCanBe) {
  Coded coded;
  EXPECT_EQ(coded.middle(), coded.divisor);
}

TEST(MiddleOfChain, TheLongestChainCountsOperationsOfItsLevel) {
  Coded coded;
  coded.program.finish();
  const auto cost = [&](int id) { return row_op_cost(coded.program.values[static_cast<std::size_t>(id)].op); };
  // load, divisor, div, convert, mul, convert, mul, convert
  EXPECT_EQ(longest_chain(coded.program, 0), 1 + cost(coded.divisor) + kDivisionCost + 3 * kConversionCost + 2);
  EXPECT_EQ(longest_chain(doubled_rows(256, 8), 0), 1 + 8);
}

TEST(MiddleOfChain, IsNoneOfAShortChain) { EXPECT_EQ(middle_of_chain(doubled_rows(256, 8), 0, 16), -1); }

TEST(MiddleOfChain, HasRoomInFewRegistersForLongHalvesAlone) {
  for (const int lanes : {8, 16}) {
    RowProgram program;
    program.columns = 256;
    program.buffers = {{.row_stride = 256}, {.is_output = true, .row_stride = 256}};
    const int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
    const int root = program.add({.op = RowOp::sqrt, .a = x});
    const int quotient = program.add({.op = RowOp::div, .a = root, .b = x});
    program.stores.push_back({1, quotient, RowDomain::element});
    program.finish();
    EXPECT_EQ(middle_of_chain(program, 0, lanes), lanes == 16 ? root : -1);
  }
}

// Inputs of the second half are computed one iteration ahead; other users would compute them again in their own
// iteration.
TEST(MiddleOfChain, IsMadeOfNothingThatOthersWant) {
  for (const bool is_wanted : {false, true}) {
    RowProgram program;
    program.columns = 256;
    program.buffers = {
        {.row_stride = 256}, {.is_output = true, .row_stride = 256}, {.is_output = true, .row_stride = 256}};
    const int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
    const int power = program.add({.op = RowOp::exp, .a = x});
    const int root = program.add({.op = RowOp::sqrt, .a = power});
    program.stores.push_back({1, program.add({.op = RowOp::tanh, .a = root}), RowDomain::element});
    if (is_wanted) program.stores.push_back({2, power, RowDomain::element});
    program.finish();
    EXPECT_EQ(middle_of_chain(program, 0, 16), is_wanted ? power : root);
  }
}

// Stored codes of bf16 are made from floats of the previous iteration, and would be computed a second time.
TEST(MiddleOfChain, IsNoCodeThatIsStored) {
  for (const bool is_stored : {false, true}) {
    Coded coded;
    const int root = coded.add({.op = RowOp::tanh, .a = coded.silu});
    coded.give(DType::f32, root);
    if (is_stored) coded.give(DType::bf16, coded.silu);
    EXPECT_EQ(coded.middle() == coded.silu, !is_stored);
  }
}

// Levels compute their own values: a value that an earlier level stored has no chain.
TEST(MiddleOfChain, IsOfOneLevel) {
  Coded coded;
  const int sum = coded.add({.op = RowOp::row_sum, .a = coded.product});
  const int over = coded.add({.op = RowOp::div, .a = coded.product, .b = sum});
  coded.give(DType::f32, over);
  coded.program.finish();
  EXPECT_EQ(coded.program.levels, 2);
  EXPECT_EQ(middle_of_chain(coded.program, 0, 16), coded.divisor);
  EXPECT_EQ(middle_of_chain(coded.program, 1, 16), -1);
}

}  // namespace weft::middle_of_chain_test
