#include "codegen/simplify_rows.h"

#include <cmath>

#include <gtest/gtest.h>

#include "codegen/row_math.h"

namespace weft::simplify_rows_test {

// A program of one input, whose value is number 0, and one output.
class OneInput {
 public:
  explicit OneInput(DType dtype) {
    program_.columns = 32;
    program_.buffers = {{.dtype = dtype, .row_stride = 32}, {.dtype = dtype, .is_output = true, .row_stride = 32}};
    program_.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  }
  int add(RowValue value) { return program_.add(value); }
  int one() { return add({.op = RowOp::constant, .number = 1}); }
  int silu_divisor(int a) {
    const int power = add({.op = RowOp::exp, .a = add({.op = RowOp::neg, .a = a})});
    return add({.op = RowOp::add, .a = power, .b = one()});
  }
  int convert(int a) { return add({.op = RowOp::convert, .a = a, .dtype = DType::bf16}); }
  void store(int value) { program_.stores.push_back({1, value, RowDomain::element}); }
  // The values, after simplify_rows.
  std::string simplified() {
    simplify_rows(program_);
    program_.finish();
    const std::string text = program_.text();
    const std::size_t begin = text.find("  v0");
    return text.substr(begin, text.find("  store") - begin);
  }

 private:
  RowProgram program_;
};

TEST(SimplifyRows, DividesBySiluInOneStep) {
  OneInput rows(DType::f32);
  rows.store(rows.add({.op = RowOp::div, .a = 0, .b = rows.silu_divisor(0)}));
  EXPECT_EQ(rows.simplified(), "  v0 elem = load 0\n  v1 elem = silu_divisor v0\n  v2 elem = div v0 v1\n");
}

TEST(SimplifyRows, KeepsADivisorThatIsUsedOtherwise) {
  OneInput rows(DType::f32);
  const int divisor = rows.silu_divisor(0);
  rows.store(rows.add({.op = RowOp::div, .a = 0, .b = divisor}));
  rows.store(divisor);
  EXPECT_EQ(rows.simplified().find("silu"), std::string::npos);
  OneInput other(DType::f32);
  const int x = other.add({.op = RowOp::abs, .a = 0});
  other.store(other.add({.op = RowOp::div, .a = 0, .b = other.silu_divisor(x)}));
  EXPECT_EQ(other.simplified().find("silu"), std::string::npos);
}

TEST(SimplifyRows, NeedsLessOfSiluThatIsRoundedToBfloat) {
  for (const bool is_kept : {false, true}) {
    OneInput rows(DType::bf16);
    const int quotient = rows.add({.op = RowOp::div, .a = 0, .b = rows.silu_divisor(0)});
    rows.store(rows.convert(quotient));
    if (is_kept) rows.store(quotient);
    EXPECT_EQ(rows.simplified(), std::string("  v0 elem = load 0\n  v1 elem = ") + (is_kept ? "" : "bf16_") +
                                     "silu_divisor v0\n  v2 elem = div v0 v1\n  v3 elem = convert v2 bf16 plain\n");
  }
}

// A NaN of f32 may have bits that rounding carries; one that was only moved may not be quiet.
TEST(SimplifyRows, RoundsPlainlyWhereNoNanCanCarry) {
  const auto is_plain = [](DType dtype, RowOp op, bool squares = false) {
    OneInput rows(dtype);
    int value = 0;
    if (squares) value = rows.add({.op = RowOp::mul, .a = 0, .b = 0});
    rows.store(rows.convert(rows.add({.op = op, .a = value})));
    return rows.simplified().find("plain") != std::string::npos;
  };
  EXPECT_TRUE(is_plain(DType::bf16, RowOp::exp));
  EXPECT_TRUE(is_plain(DType::bf16, RowOp::neg, true));
  EXPECT_FALSE(is_plain(DType::bf16, RowOp::neg));
  EXPECT_FALSE(is_plain(DType::f32, RowOp::exp));
  EXPECT_FALSE(is_plain(DType::f16, RowOp::exp));
  EXPECT_FALSE(is_plain(DType::f32, RowOp::neg, true));
}

TEST(SimplifyRows, EveryFunctionOfAShortNanGivesAShortQuietOne) {
  int count = 0;
  for (std::uint32_t upper = 0; upper < 0x10000u; ++upper) {
    const float a = float_of_bits(upper << 16);
    for (const float y : {row_exp(a), row_tanh(a), row_erf(a), row_sigmoid(a), row_silu_divisor(a), row_sqrt(a)}) {
      if (!std::isnan(y)) continue;
      ++count;
      EXPECT_EQ(bits_of_float(y) & 0x40ffffu, 0x400000u) << upper;
      EXPECT_EQ(encode_plain_bf16(y), encode_bf16(y)) << upper;
    }
    EXPECT_TRUE(std::isnan(a) || encode_plain_bf16(a) == encode_bf16(a)) << upper;
  }
  EXPECT_GT(count, 6 * 254);
}

TEST(SimplifyRows, TheDivisorOfSiluHasTheBitsOfItsParts) {
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 1009) {
    const float a = float_of_bits(static_cast<std::uint32_t>(bits));
    const float wanted = a / (row_exp(-a) + 1.0f), came = a / row_silu_divisor(a);
    EXPECT_TRUE(std::isnan(wanted) ? std::isnan(came) : bits_of_float(wanted) == bits_of_float(came)) << a;
  }
}

}  // namespace weft::simplify_rows_test
