#include "codegen/simplify_rows.h"

#include <cmath>

#include <gtest/gtest.h>

#include "codegen/row_math.h"

namespace weft::simplify_rows_test {

// A program with one input, which is value 0, and one output.
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
  int convert(int a, DType dtype = DType::bf16) { return add({.op = RowOp::convert, .a = a, .dtype = dtype}); }
  int constant(double number) { return add({.op = RowOp::constant, .number = number}); }
  // The input's largest magnitude, at least `least`, by `limit`.
  int scale(double least, double limit) {
    const int largest = add({.op = RowOp::row_max, .a = add({.op = RowOp::abs, .a = 0})});
    const int held = add({.op = RowOp::at_least, .a = largest, .b = constant(least)});
    return add({.op = RowOp::div, .a = held, .b = constant(limit)});
  }
  int held(int a, double limit) {
    const int low = add({.op = RowOp::at_least, .a = a, .b = constant(-limit)});
    return add({.op = RowOp::at_most, .a = low, .b = constant(limit)});
  }
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

TEST(SimplifyRows, ConvertsOnce) {
  OneInput rows(DType::bf16);
  const int once = rows.convert(rows.add({.op = RowOp::neg, .a = 0}));
  rows.store(rows.convert(rows.convert(once)));
  rows.store(rows.convert(rows.convert(once, DType::f16)));
  EXPECT_EQ(rows.simplified(),
            "  v0 elem = load 0\n  v1 elem = neg v0\n  v2 elem = convert v1 bf16\n  v3 elem = convert v2 f16\n"
            "  v4 elem = convert v3 bf16\n");
}

// This requires that each number of a dtype is its own code's, and that the dtype has one code for the NaN that it
// makes.
TEST(SimplifyRows, WhatWasConvertedHasItsCode) {
  const auto check = [](auto encode, auto decode, std::uint32_t codes) {
    for (std::uint32_t code = 0; code < codes; ++code) {
      const auto made = encode(decode(static_cast<decltype(encode(0.0f))>(code)));
      ASSERT_EQ(encode(decode(made)), made) << code;
    }
  };
  check(encode_bf16, decode_bf16, 0x10000);
  check(encode_f16, decode_f16, 0x10000);
  check(encode_i8, decode_i8, 0x100);
  check(encode_u8, decode_u8, 0x100);
  check(encode_f8e4m3, decode_f8e4m3, 0x100);
  check(encode_f8e4m3fnuz, decode_f8e4m3fnuz, 0x100);
  check(encode_f8e5m2, decode_f8e5m2, 0x100);
}

TEST(SimplifyRows, NeedsLessOfASigmoidThatIsRoundedToBfloat) {
  for (const bool is_kept : {false, true}) {
    OneInput rows(DType::bf16);
    const int sigmoid = rows.add({.op = RowOp::sigmoid, .a = 0});
    rows.store(rows.convert(sigmoid));
    if (is_kept) rows.store(sigmoid);
    EXPECT_EQ(rows.simplified(), std::string("  v0 elem = load 0\n  v1 elem = ") + (is_kept ? "" : "bf16_") +
                                     "sigmoid v0\n  v2 elem = convert v1 bf16 plain\n");
  }
  OneInput wider(DType::f32);
  wider.store(wider.convert(wider.add({.op = RowOp::sigmoid, .a = 0})));
  EXPECT_EQ(wider.simplified().find("bf16_sigmoid"), std::string::npos);
}

TEST(SimplifyRows, DoesNotRoundABfloatThatWasHeldWithinLimitsForArithmetic) {
  enum class Use { arithmetic, code, stored, limited };
  const auto simplified = [](DType dtype, double limit, Use use) {
    OneInput rows(dtype);
    const int low =
        rows.add({.op = RowOp::at_least, .a = rows.add({.op = RowOp::neg, .a = 0}), .b = rows.constant(-7)});
    const int held = rows.convert(rows.add({.op = RowOp::at_most, .a = low, .b = rows.constant(limit)}));
    rows.store(use == Use::code ? rows.convert(held, DType::i8) : rows.add({.op = RowOp::mul, .a = held, .b = held}));
    if (use == Use::stored) rows.store(held);
    if (use == Use::limited) rows.store(rows.add({.op = RowOp::at_least, .a = held, .b = rows.constant(1)}));
    return rows.simplified();
  };
  const auto rounds = [&](DType dtype, double limit, Use use) {
    return simplified(dtype, limit, use).find(" bf16") != std::string::npos;
  };
  EXPECT_FALSE(rounds(DType::bf16, 7, Use::code));
  EXPECT_EQ(simplified(DType::bf16, 7, Use::arithmetic),
            "  v0 elem = load 0\n  v1 elem = neg v0\n  v2 const = constant -7\n  v3 elem = at_least v1 v2\n"
            "  v4 const = constant 7\n  v5 elem = at_most v3 v4\n  v6 elem = mul v5 v5\n");
  EXPECT_TRUE(rounds(DType::f32, 7, Use::arithmetic));
  EXPECT_TRUE(rounds(DType::bf16, 7.01, Use::arithmetic));
  EXPECT_TRUE(rounds(DType::bf16, 7, Use::stored));
  EXPECT_TRUE(rounds(DType::bf16, 7, Use::limited));
}

TEST(SimplifyRows, LeavesOutLimitsThatCodesOfFourBitsHave) {
  const auto simplified = [](double limit) {
    OneInput rows(DType::f32);
    rows.store(rows.convert(rows.held(0, limit), DType::f4e2m1));
    return rows.simplified();
  };
  EXPECT_EQ(simplified(6), "  v0 elem = load 0\n  v1 elem = convert v0 f4e2m1\n");
  EXPECT_EQ(simplified(8), simplified(6));
  EXPECT_NE(simplified(5).find("at_most"), std::string::npos);
  for (const std::uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800000u, 0xff800000u, 0x40c00001u, 0xc0c00001u}) {
    const float x = float_of_bits(bits);
    EXPECT_EQ(encode_f4e2m1(x), encode_f4e2m1(row_at_most(row_at_least(x, -6.0f), 6.0f))) << x;
  }
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

TEST(SimplifyRows, MakesCodesOfQuotientsThatNeedNoLimits) {
  OneInput rows(DType::bf16);
  const int quotient = rows.add({.op = RowOp::div, .a = 0, .b = rows.scale(1e-10, 127)});
  rows.store(rows.convert(rows.add({.op = RowOp::round, .a = rows.held(quotient, 127)}), DType::i8));
  EXPECT_EQ(rows.simplified(),
            "  v0 elem = load 0\n  v1 elem = abs v0\n  v2 row = row_max v1\n  v3 const = constant 1e-10\n"
            "  v4 row = at_least v2 v3\n  v5 const = constant 127\n  v6 row = div v4 v5\n  v7 const = constant 1\n"
            "  v8 row = div v7 v6\n  v9 const = constant 3.40282347e+38\n  v10 row = at_most v6 v9\n"
            "  v11 elem = short_quotient v0 v10 v8\n  v12 elem = convert v11 i8 plain\n");
}

// A quotient may overflow if the scale is a tiny part of the largest value, and the correction of a product may then be
// NaN.
TEST(SimplifyRows, KeepsTheDivisionByATinyPartOfTheLargest) {
  for (const double limit : {127.0, 1e30}) {
    OneInput rows(DType::f32);
    const int scale = rows.add({.op = RowOp::at_least, .a = rows.scale(1e-12, limit), .b = rows.constant(1e-12)});
    const int quotient = rows.add({.op = RowOp::div, .a = 0, .b = scale});
    rows.store(rows.convert(rows.add({.op = RowOp::round, .a = rows.held(quotient, 127)}), DType::i8));
    EXPECT_EQ(rows.simplified().find("quotient") != std::string::npos, limit == 127) << limit;
  }
}

// The scale's least is too small, limits are closer, codes go toward zero, the value is of f32, or is used otherwise.
TEST(SimplifyRows, KeepsWhatQuotientsNeed) {
  enum class Change { none, small, close, truncated, wide, shared };
  const auto simplified = [](Change change) {
    OneInput rows(change == Change::wide ? DType::f32 : DType::bf16);
    const int scale = rows.scale(change == Change::small ? 1e-20 : 1e-10, 448);
    const int quotient = rows.add({.op = RowOp::div, .a = 0, .b = scale});
    const DType dtype = change == Change::truncated ? DType::i8 : DType::f8e4m3;
    rows.store(rows.convert(rows.held(quotient, change == Change::close ? 100 : 448), dtype));
    if (change == Change::shared) rows.store(quotient);
    return rows.simplified();
  };
  const auto has = [&](Change change, const std::string& text) {
    return simplified(change).find(text) != std::string::npos;
  };
  EXPECT_FALSE(has(Change::none, "at_least v1"));
  for (const Change change : {Change::none, Change::close, Change::truncated})
    EXPECT_TRUE(has(change, "short_quotient"));
  EXPECT_TRUE(has(Change::wide, "elem = quotient"));
  for (const Change change : {Change::small, Change::shared}) EXPECT_FALSE(has(change, "quotient"));
  for (const Change change : {Change::small, Change::close, Change::truncated, Change::shared})
    EXPECT_TRUE(has(change, "elem = at_most"));
  EXPECT_TRUE(has(Change::close, "f8e4m3 plain"));
  EXPECT_FALSE(has(Change::truncated, "plain"));
}

TEST(SimplifyRows, QuotientsHaveTheBitsOfDivisions) {
  for (std::uint32_t scale = 0; scale < 0x800000u; scale += 1021) {
    const float b = float_of_bits(0x3f800000u + scale), c = 1.0f / b;
    for (std::uint32_t code = 0; code < 0x800000u; code += 0x2000) {
      const float a = float_of_bits(0x3f800000u + code);
      ASSERT_EQ(nearer_quotient(a * c, a, b, c), a / b) << a << " " << b;
    }
    const float a = float_of_bits(0x3f800000u + scale * 7919u % 0x800000u);
    const float near = nearer_quotient(a * c, a, b, c);
    ASSERT_EQ(nearer_quotient(near, a, b, c), a / b) << a << " " << b;
  }
  EXPECT_TRUE(std::signbit(nearer_quotient(-0.0f, -0.0f, 3.0f, 1.0f / 3.0f)));
}

TEST(SimplifyRows, PlainCodesAreThoseOfTheCast) {
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 499) {
    const float a = float_of_bits(static_cast<std::uint32_t>(bits));
    if (std::isnan(a) || std::abs(a) < 464) {
      EXPECT_EQ(encode_plain_f8e4m3(a), encode_f8e4m3(a)) << a;
      EXPECT_EQ(bits_of_float(row_rounded_f8e4m3(a)), bits_of_float(decode_f8e4m3(encode_f8e4m3(a)))) << a;
    }
    if (std::isnan(a) || std::abs(a) < 127.5f) {
      EXPECT_EQ(encode_plain_i8(a), encode_i8(row_round(a))) << a;
    }
  }
  for (int code = -448 * 64; code <= 448 * 64; ++code) {
    const float a = static_cast<float>(code) / 64;
    EXPECT_EQ(encode_plain_f8e4m3(a), encode_f8e4m3(a)) << a;
    EXPECT_EQ(bits_of_float(row_rounded_f8e4m3(a)), bits_of_float(decode_f8e4m3(encode_f8e4m3(a)))) << a;
  }
}

TEST(SimplifyRows, CodesOfFourBitsAreThoseOfTheCast) {
  const auto look_at = [](float a) {
    ASSERT_EQ(encode_f4e2m1(a), f32_to_f4e2m1(a)) << a;
    ASSERT_EQ(encode_plain_f4e2m1(a), f32_to_f4e2m1(a + 0.0f)) << a;
  };
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 499)
    look_at(float_of_bits(static_cast<std::uint32_t>(bits)));
  for (std::uint32_t eighths = 0; eighths <= 64; ++eighths)
    for (const std::uint32_t sign : {0u, kFloatSign})
      for (const std::uint32_t step : {0u, 1u, ~0u})
        look_at(float_of_bits(((bits_of_float(static_cast<float>(eighths) / 8) + step) & kFloatMagnitude) | sign));
  for (const std::uint32_t infinite : {0x7f800000u, 0xff800000u})
    for (const std::uint32_t step : {0u, 1u, ~0u}) look_at(float_of_bits(infinite + step));
}

TEST(SimplifyRows, LeavesOutTheSumWithZeroBeforeCodesThatHaveNoMinusZero) {
  const auto text_with = [](float number, bool is_read = false) {
    RowProgram program;
    program.columns = 32;
    program.buffers = {{.dtype = DType::f32, .row_stride = 32},
                       {.dtype = DType::f4e2m1, .is_output = true, .row_stride = 32}};
    int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
    if (!is_read) x = program.add({.op = RowOp::mul, .a = x, .b = x});
    const int added = program.add({.op = RowOp::constant, .number = static_cast<double>(number)});
    const int sum = program.add({.op = RowOp::add, .a = x, .b = added});
    program.stores.push_back({1, program.add({.op = RowOp::convert, .a = sum, .dtype = DType::f4e2m1})});
    simplify_rows(program);
    program.finish();
    return program.text();
  };
  EXPECT_NE(text_with(0.0f).find("v2 elem = convert v1 f4e2m1 plain"), std::string::npos) << text_with(0.0f);
  for (const float other : {-0.0f, 1.0f})
    EXPECT_EQ(text_with(other).find("plain"), std::string::npos) << text_with(other);
  // The sum makes a NaN quiet, too.
  EXPECT_EQ(text_with(0.0f, true).find("plain"), std::string::npos) << text_with(0.0f, true);
}

// A NaN that arithmetic makes and limits pass on.
TEST(SimplifyRows, PlainCodesOfFp8AreOfQuietNan) {
  for (const RowOp made : {RowOp::load, RowOp::mul, RowOp::convert}) {
    RowProgram program;
    program.columns = 32;
    program.buffers = {{.dtype = DType::f32, .row_stride = 32},
                       {.dtype = DType::f8e4m3, .is_output = true, .row_stride = 32}};
    int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
    if (made == RowOp::mul) x = program.add({.op = RowOp::mul, .a = x, .b = x});
    if (made == RowOp::convert) x = program.add({.op = RowOp::convert, .a = x, .dtype = DType::bf16});
    const int low = program.add({.op = RowOp::constant, .number = -448});
    const int high = program.add({.op = RowOp::constant, .number = 448});
    x = program.add({.op = RowOp::at_least, .a = x, .b = low});
    x = program.add({.op = RowOp::at_most, .a = x, .b = high});
    program.stores.push_back({1, program.add({.op = RowOp::convert, .a = x, .dtype = DType::f8e4m3})});
    simplify_rows(program);
    program.finish();
    EXPECT_EQ(program.text().find("f8e4m3 plain") != std::string::npos, made != RowOp::load) << program.text();
  }
}

TEST(SimplifyRows, TheDivisorOfSiluHasTheBitsOfItsParts) {
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 1009) {
    const float a = float_of_bits(static_cast<std::uint32_t>(bits));
    const float wanted = a / (row_exp(-a) + 1.0f), came = a / row_silu_divisor(a);
    EXPECT_TRUE(std::isnan(wanted) ? std::isnan(came) : bits_of_float(wanted) == bits_of_float(came)) << a;
  }
}

}  // namespace weft::simplify_rows_test
