// Codes of groups in fewer steps: the same bits as in all of them, whatever is read.

#include "codegen/short_ways.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "codegen/compile_rows.h"
#include "codegen/row_math.h"
#include "codegen/simplify_rows.h"
#include "runtime/loaded_code.h"
#include "tests/codegen/random_rows.h"
#include "tests/test_context.h"

namespace weft::short_ways_test {

enum class Change : std::uint8_t { none, stored_value, stored_maximum, other_use, no_least, small_least, two_maxima };
enum class Made : std::uint8_t { of_rows, by_silu, as_read };

struct Case {
  Made made = Made::of_rows;
  DType codes = DType::f8e4m3;
  std::int64_t group = 32;
  Change change = Change::none;
};

// bf16(bf16(x * s) * w), bf16(silu(x) * w), or x, and its codes; s is a number of the row.
class Coded {
 public:
  explicit Coded(const Case& wanted) {
    program.columns = 128;
    program.group = wanted.group;
    const int x = load(DType::bf16, RowDomain::element), w = load(DType::bf16, RowDomain::element);
    const int s = load(DType::f32, RowDomain::row);
    int v = x;
    if (wanted.made == Made::of_rows) v = bf16(binary(RowOp::mul, bf16(binary(RowOp::mul, x, s)), w));
    if (wanted.made == Made::by_silu) v = bf16(binary(RowOp::mul, bf16(silu(x)), w));
    const int maximum = unary(RowOp::group_max, unary(RowOp::abs, v));
    const double limit = wanted.codes == DType::i8 ? 127 : 448;
    int least = maximum;
    if (wanted.change != Change::no_least)
      least = binary(RowOp::at_least, maximum, constant(wanted.change == Change::small_least ? 0x1p-60 : 1e-10));
    const int scale = binary(RowOp::div, least, constant(limit));
    int code = binary(RowOp::div, v, scale);
    code = binary(RowOp::at_most, binary(RowOp::at_least, code, constant(-limit)), constant(limit));
    if (wanted.codes == DType::i8) code = unary(RowOp::round, code);
    store(program.add({.op = RowOp::convert, .a = code, .dtype = wanted.codes}), wanted.codes, RowDomain::element);
    store(scale, DType::f32, RowDomain::group);
    if (wanted.change == Change::stored_value) store(v, DType::bf16, RowDomain::element);
    if (wanted.change == Change::stored_maximum) store(maximum, DType::f32, RowDomain::group);
    if (wanted.change == Change::other_use) store(bf16(unary(RowOp::neg, v)), DType::bf16, RowDomain::element);
    if (wanted.change == Change::two_maxima)
      store(unary(RowOp::group_max, unary(RowOp::abs, w)), DType::f32, RowDomain::group);
    simplify_rows(program);
    program.finish();
  }
  Coded(const Coded&) = delete;

  RowProgram program;

 private:
  int buffer(DType dtype, bool is_output, RowDomain domain) {
    const std::int64_t elements = domain == RowDomain::element ? program.columns
                                  : domain == RowDomain::group ? program.columns / program.group
                                                               : 1;
    program.buffers.push_back({.dtype = dtype, .is_output = is_output, .row_stride = elements});
    return static_cast<int>(program.buffers.size()) - 1;
  }
  int load(DType dtype, RowDomain domain) {
    return program.add({.op = RowOp::load, .domain = domain, .buffer = buffer(dtype, false, domain)});
  }
  void store(int value, DType dtype, RowDomain domain) {
    program.stores.push_back({buffer(dtype, true, domain), value, domain});
  }
  int unary(RowOp op, int a) { return program.add({.op = op, .a = a}); }
  int binary(RowOp op, int a, int b) { return program.add({.op = op, .a = a, .b = b}); }
  int constant(double number) { return program.add({.op = RowOp::constant, .number = number}); }
  int bf16(int a) { return program.add({.op = RowOp::convert, .a = a, .dtype = DType::bf16}); }
  int silu(int x) {
    const int power = unary(RowOp::exp, unary(RowOp::neg, x));
    return binary(RowOp::div, x, binary(RowOp::add, power, constant(1)));
  }
};

TEST(ShortWays, AreThereForCodesOfGroups) {
  for (const Made made : {Made::of_rows, Made::by_silu, Made::as_read})
    for (const DType codes : {DType::i8, DType::f8e4m3}) {
      const auto ways = find_short_ways(Coded({.made = made, .codes = codes}).program);
      const bool is_read = made == Made::as_read, is_f8 = codes == DType::f8e4m3;
      ASSERT_EQ(ways.has_value(), !is_read || is_f8);
      if (!ways) continue;
      EXPECT_EQ(ways->level, 0);
      EXPECT_EQ(ways->is_ordinary_f8, is_f8);
      EXPECT_EQ(ways->roundings.size(), is_read ? 0u : 2u);
      EXPECT_EQ(ways->watched.size(), is_read ? 0u : 1u);
    }
}

TEST(ShortWays, AreNotWhereSomethingElseTellsTinyNumbersApart) {
  for (const Change change : {Change::stored_value, Change::stored_maximum, Change::other_use, Change::no_least,
                              Change::small_least, Change::two_maxima})
    EXPECT_FALSE(find_short_ways(Coded({.change = change}).program)) << static_cast<int>(change);
}

TEST(ShortWays, SplittingRoundsToBfloat) {
  const auto rounded = [](float a) { return bf16_to_f32(f32_to_bf16(a)); };
  for (const std::uint32_t exponent : {1u, 2u, 100u, 127u, 128u, 200u, 237u})
    for (std::uint32_t significand = 0; significand < 0x800000u; significand += exponent == 127 ? 1 : 61) {
      const float a = float_of_bits(exponent << 23 | significand);
      ASSERT_EQ(row_split_bf16(a), rounded(a)) << a;
      ASSERT_EQ(row_split_bf16(-a), rounded(-a)) << a;
    }
  for (const float zero : {0.0f, -0.0f}) EXPECT_EQ(bits_of_float(row_split_bf16(zero)), bits_of_float(zero));
  for (std::uint32_t bits = 1; bits < 0x800000u; bits += 1013) {
    EXPECT_LE(row_split_bf16(float_of_bits(bits)), 0x1p-126f);
    EXPECT_EQ(bits_of_float(row_split_bf16(-float_of_bits(bits))) >> 31, 1u) << bits;
  }
  for (const float far : {0x1p112f, 0x1p127f, __builtin_inff(), -__builtin_inff(), __builtin_nanf("")})
    EXPECT_TRUE(std::isnan(row_split_bf16(far))) << far;
}

TEST(ShortWays, ProductsRoundToBfloat) {
  for (std::uint32_t m = 1; m < 0x10000; ++m)
    for (const float power : {0x1p-141f, 0x1p-20f, 0x1p90f}) {
      const float a = static_cast<float>(m) * power;
      if (a < 0x1p-126f) continue;
      ASSERT_EQ(row_product_bf16(a), bf16_to_f32(f32_to_bf16(a))) << a;
      ASSERT_EQ(row_product_bf16(-a), -row_product_bf16(a)) << a;
    }
}

// bf16 of every kind: rows of ordinary numbers, of tiny and of huge ones, of any bits, and with a single odd one.
class Inputs {
 public:
  explicit Inputs(std::uint32_t seed) : random_(seed) {}

  void fill(RowBuffers& buffers, const RowProgram& program, std::int64_t rows) {
    auto* x = reinterpret_cast<std::uint16_t*>(buffers.memory(0).data());
    auto* w = reinterpret_cast<std::uint16_t*>(buffers.memory(1).data());
    auto* s = reinterpret_cast<float*>(buffers.memory(2).data());
    for (std::int64_t row = 0; row < rows; ++row, x += program.columns, w += program.columns) {
      fill_row(x, program.columns);
      fill_row(w, program.columns);
      s[row] = bf16_to_f32(any(100 + below(60), 1)) * (1 + static_cast<float>(below(0x800000)) * 0x1p-23f);
    }
  }

 private:
  std::uint32_t below(std::uint32_t count) { return random_() % count; }
  // A number whose exponent field is one of `spread` up to `largest`.
  std::uint16_t any(std::uint32_t largest, std::uint32_t spread) {
    const std::uint32_t exponent = largest - std::min(largest, below(spread));
    return static_cast<std::uint16_t>(below(2) << 15 | exponent << 7 | below(128));
  }
  void fill_row(std::uint16_t* row, std::int64_t columns) {
    constexpr std::uint16_t kOdd[] = {0x7fc0, 0xffc0, 0x7f80, 0xff80, 0x7fa5, 0x0000,
                                      0x8000, 0x0001, 0x807f, 0x7f7f, 0x5fff, 0x6000};
    const std::uint32_t kind = below(8), largest = kind < 4 ? 120 + below(16) : below(255);
    const std::uint32_t spread = kind == 0 ? 8 : kind == 1 ? 255 : 1 + below(60);
    for (std::int64_t i = 0; i < columns; ++i)
      row[i] = kind == 7 ? static_cast<std::uint16_t>(below(0x10000)) : any(largest, spread);
    if (kind == 2 || kind == 5) row[below(static_cast<std::uint32_t>(columns))] = kOdd[below(std::size(kOdd))];
  }

  std::mt19937 random_;
};

std::shared_ptr<const LoadedCode> compiled(const RowProgram& program, CpuFeatures features) {
  std::string problem;
  const auto object = compile_rows(program, features, problem);
  EXPECT_EQ(problem, "");
  return LoadedCode::load(object);
}

TEST(ShortWays, GiveTheBitsOfTheLongOnes) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  if (describe_cpu("", 1).features < CpuFeatures::avx2) GTEST_SKIP() << "short ways are those of AVX2";
  constexpr std::int64_t kRows = 1500;
  std::uint32_t seed = 1;
  for (const Made made : {Made::of_rows, Made::by_silu, Made::as_read})
    for (const DType codes : {DType::i8, DType::f8e4m3})
      for (const std::int64_t group : {32, 128}) {
        const Coded coded({.made = made, .codes = codes, .group = group});
        const auto plain = compiled(coded.program, CpuFeatures::baseline);
        const auto code = compiled(coded.program, CpuFeatures::avx2);
        RowBuffers wanted(coded.program, kRows, 3), came(coded.program, kRows, 3);
        Inputs(++seed).fill(wanted, coded.program, kRows);
        Inputs(seed).fill(came, coded.program, kRows);
        wanted.run(plain->find<RowFunction>(coded.program.name()));
        came.run(code->find<RowFunction>(coded.program.name()));
        EXPECT_EQ(difference(coded.program, wanted, came), "") << static_cast<int>(made) << " " << group;
        EXPECT_TRUE(came.is_intact());
      }
}

// A group's scale shows its largest value: that of a single operand, of every one in turn.
TEST(ShortWays, NoQuotientOfSiluIsInTheMiddleOfTwoBfloats) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  if (describe_cpu("", 1).features < CpuFeatures::avx2) GTEST_SKIP() << "short ways are those of AVX2";
  const Coded coded({.made = Made::by_silu, .codes = DType::i8});
  const std::int64_t groups = coded.program.columns / coded.program.group, rows = 0x10000 / groups;
  RowBuffers wanted(coded.program, rows, 3), came(coded.program, rows, 3);
  for (RowBuffers* buffers : {&wanted, &came}) {
    auto* x = reinterpret_cast<std::uint16_t*>(buffers->memory(0).data());
    auto* w = reinterpret_cast<std::uint16_t*>(buffers->memory(1).data());
    std::fill_n(x, rows * coded.program.columns, std::uint16_t{0});
    std::fill_n(w, rows * coded.program.columns, std::uint16_t{0x3f80});
    for (std::int64_t code = 0; code < 0x10000; ++code) {
      const bool is_finite = (code & 0x7fff) < 0x7f80;  // others would make their row one of the long way
      x[code * coded.program.group] = static_cast<std::uint16_t>(is_finite ? code : 0);
    }
  }
  const auto plain = compiled(coded.program, CpuFeatures::baseline), code = compiled(coded.program, CpuFeatures::avx2);
  wanted.run(plain->find<RowFunction>(coded.program.name()));
  came.run(code->find<RowFunction>(coded.program.name()));
  EXPECT_EQ(difference(coded.program, wanted, came), "");
}

}  // namespace weft::short_ways_test
