// Codes of groups and rows by fast paths: the same bits as without them, for all inputs.

#include "codegen/short_ways.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "codegen/compile_rows.h"
#include "codegen/emit_short_ways.h"
#include "codegen/row_math.h"
#include "codegen/simplify_rows.h"
#include "runtime/loaded_code.h"
#include "tests/codegen/random_rows.h"
#include "tests/test_context.h"

namespace weft::short_ways_test {

enum class Change : std::uint8_t {
  none,
  stored_value,
  stored_operand,
  summed_operand,
  stored_maximum,
  other_use,
  raised_maximum,
  small_least,
  two_maxima,
  // These have fast paths.
  dequantized,
  dequantized_over,
  read_later,
  shared_weights,
};
constexpr Change kChanges[] = {Change::stored_value,   Change::stored_operand, Change::summed_operand,
                               Change::stored_maximum, Change::other_use,      Change::raised_maximum,
                               Change::small_least,    Change::two_maxima};
constexpr Change kReadings[] = {Change::dequantized, Change::dequantized_over, Change::read_later};
enum class Made : std::uint8_t { of_rows, of_sums, by_silu, as_read };

struct Case {
  Made made = Made::of_rows;
  DType codes = DType::f8e4m3;
  std::int64_t group = 32;  // 0: the row is one
  Change change = Change::none;
  std::int64_t columns = 128;
};

// bf16(bf16(x * s) * w), bf16(bf16(x + s) * w), bf16(silu(x) * w), or x, and its codes; s is a number of the row.
class Coded {
 public:
  explicit Coded(const Case& wanted) {
    stride_ = program.columns = wanted.columns;
    program.group = wanted.group;
    if (wanted.change == Change::dequantized) stride_ = 2 * program.columns;
    const int x = load(DType::bf16, RowDomain::element);
    if (wanted.change == Change::shared_weights) stride_ = 0;
    const int w = load(DType::bf16, RowDomain::element);
    stride_ = program.columns;
    const int s = load(DType::f32, RowDomain::row);
    int v = x;
    if (wanted.made == Made::of_sums) v = bf16(binary(RowOp::mul, bf16(binary(RowOp::add, x, s)), w));
    if (wanted.made == Made::of_rows) v = bf16(binary(RowOp::mul, bf16(binary(RowOp::mul, x, s)), w));
    if (wanted.made == Made::by_silu) v = bf16(binary(RowOp::mul, bf16(silu(x)), w));
    const int scale = store_codes(v, wanted);
    if (wanted.change == Change::dequantized || wanted.change == Change::dequantized_over)
      store(bf16(binary(RowOp::mul, code_, scale)), DType::bf16, RowDomain::element);
    if (wanted.change == Change::read_later) {
      const int wide = unary(RowOp::widen, code_), sum = unary(RowOp::widen, unary(RowOp::row_sum, code_));
      store(bf16(unary(RowOp::narrow, binary(RowOp::div, wide, sum))), DType::bf16, RowDomain::element);
    }
    if (wanted.change == Change::stored_value) store(v, DType::bf16, RowDomain::element);
    if (wanted.change == Change::stored_operand) store(bf16(unary(RowOp::neg, x)), DType::bf16, RowDomain::element);
    if (wanted.change == Change::summed_operand) store(unary(RowOp::row_sum, x), DType::f32, RowDomain::row);
    if (wanted.change == Change::other_use) store(bf16(binary(RowOp::mul, v, scale)), DType::bf16, RowDomain::element);
    if (wanted.change == Change::two_maxima) store_codes(w, wanted);
    simplify_rows(program);
    program.finish();
  }
  Coded(const Coded&) = delete;

  RowProgram program;

 private:
  int buffer(DType dtype, bool is_output, RowDomain domain) {
    const std::int64_t elements = domain == RowDomain::element ? stride_
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
  // Gives the scale.
  int store_codes(int v, const Case& wanted) {
    const RowDomain domain = wanted.group > 0 ? RowDomain::group : RowDomain::row;
    const int maximum = unary(wanted.group > 0 ? RowOp::group_max : RowOp::row_max, unary(RowOp::abs, v));
    if (wanted.change == Change::stored_maximum) store(maximum, DType::f32, domain);
    const double limit = wanted.codes == DType::i8 ? 127 : 448;
    const int scale = binary(RowOp::div, least_of(maximum, wanted.change), constant(limit));
    int code = binary(RowOp::div, v, scale);
    code = binary(RowOp::at_most, binary(RowOp::at_least, code, constant(-limit)), constant(limit));
    if (wanted.codes == DType::i8) code = unary(RowOp::round, code);
    code_ = program.add({.op = RowOp::convert, .a = code, .dtype = wanted.codes});
    store(code_, wanted.codes, RowDomain::element);
    store(scale, DType::f32, domain);
    return scale;
  }
  int least_of(int maximum, Change change) {
    if (change == Change::raised_maximum) maximum = binary(RowOp::mul, maximum, constant(2));
    if (change != Change::small_least) return binary(RowOp::at_least, maximum, constant(1e-10));
    // With these factors, codes have a fast quotient by the scale.
    maximum = binary(RowOp::mul, maximum, constant(0x1p-20));
    return binary(RowOp::mul, binary(RowOp::at_least, maximum, constant(0x1p-60)), constant(0x1p26));
  }
  int unary(RowOp op, int a) { return program.add({.op = op, .a = a}); }
  int binary(RowOp op, int a, int b) { return program.add({.op = op, .a = a, .b = b}); }
  int constant(double number) { return program.add({.op = RowOp::constant, .number = number}); }
  int bf16(int a) { return program.add({.op = RowOp::convert, .a = a, .dtype = DType::bf16}); }
  int silu(int x) {
    const int power = unary(RowOp::exp, unary(RowOp::neg, x));
    return binary(RowOp::div, x, binary(RowOp::add, power, constant(1)));
  }

  std::int64_t stride_ = 0;
  int code_ = -1;
};

// Each of two maxima must be one that has a fast path by itself: only its own value may be kept with it.
Case changed(Change change, std::int64_t group = 32) {
  return {.made = change == Change::two_maxima ? Made::as_read : Made::of_rows, .group = group, .change = change};
}

class ShortWaysOf : public testing::TestWithParam<std::int64_t> {};

TEST_P(ShortWaysOf, AreThereForCodes) {
  for (const Made made : {Made::of_rows, Made::by_silu, Made::as_read})
    for (const DType codes : {DType::i8, DType::f8e4m3}) {
      const auto ways = find_short_ways(Coded({.made = made, .codes = codes, .group = GetParam()}).program);
      const bool is_read = made == Made::as_read, is_f8 = codes == DType::f8e4m3;
      ASSERT_EQ(ways.has_value(), !is_read || is_f8);
      if (!ways) continue;
      EXPECT_EQ(ways->level, 0);
      EXPECT_EQ(ways->is_ordinary_f8, is_f8);
      EXPECT_EQ(ways->roundings.size(), is_read ? 0u : 2u);
      EXPECT_EQ(ways->watched.size(), is_read ? 0u : 1u);
      EXPECT_GE(ways->divisor, 0);
    }
}

TEST_P(ShortWaysOf, AreNotWhereSomethingElseTellsTinyNumbersApart) {
  for (const Change change : kChanges) {
    const Coded coded(changed(change, GetParam()));
    EXPECT_FALSE(find_short_ways(coded.program)) << static_cast<int>(change);
    const auto is_quotient = [](const RowValue& value) { return value.op == RowOp::short_quotient; };
    EXPECT_EQ(std::count_if(coded.program.values.begin(), coded.program.values.end(), is_quotient),
              change == Change::two_maxima ? 2 : 1)
        << "others have no short way for another reason: " << static_cast<int>(change);
    EXPECT_TRUE(coded.program.in_pairs);
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, ShortWaysOf, testing::Values(0, 16, 32));

// Signs that the loads do not contain are stored in the buffer of the codes, which others must not read.
TEST(ShortWays, HaveMagnitudesWhereOnlyCodesOfFp8Are) {
  const auto ways = [](const Case& wanted) { return *find_short_ways(Coded(wanted).program); };
  EXPECT_TRUE(ways({}).keeps_magnitudes);
  EXPECT_LT(ways({}).signs_at, 0);
  EXPECT_TRUE(ways({.made = Made::of_sums}).keeps_magnitudes);
  EXPECT_GE(ways({.made = Made::of_sums}).signs_at, 0);
  EXPECT_FALSE(ways({.made = Made::of_sums, .codes = DType::i8}).keeps_magnitudes);
  for (const Change change : kReadings) {
    EXPECT_FALSE(ways({.change = change}).keeps_magnitudes) << static_cast<int>(change);
    EXPECT_FALSE(ways({.made = Made::of_sums, .change = change}).keeps_magnitudes) << static_cast<int>(change);
  }
}

TEST(ShortWays, WatchOnceWhatAllRowsRead) {
  for (const Change change : {Change::none, Change::shared_weights}) {
    const Coded coded({.change = change});
    EXPECT_EQ(is_watched_once(*find_short_ways(coded.program), coded.program), change == Change::shared_weights);
  }
}

TEST(ShortWays, KeepTheSignsOf0WhereCodesAreRead) {
  for (const Change change : {Change::none, Change::dequantized, Change::dequantized_over, Change::read_later}) {
    const auto ways = find_short_ways(Coded({.change = change}).program);
    ASSERT_TRUE(ways) << static_cast<int>(change);
    const bool is_stored = change == Change::none;
    EXPECT_EQ(ways->signs.empty(), !is_stored) << static_cast<int>(change);
    EXPECT_EQ(ways->divisor < 0, !is_stored) << static_cast<int>(change);
    EXPECT_EQ(ways->roundings.at(ways->v), is_stored ? ShortRounding::fused : ShortRounding::split);
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
    for (std::int64_t row = 0; row < rows; ++row) {
      fill_row(x + row * program.buffers[0].row_stride, program.columns);
      if (row == 0 || program.buffers[1].row_stride > 0)
        fill_row(w + row * program.buffers[1].row_stride, program.columns);
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

const char* missing() {
  if (!can_compile_rows()) return "libweft_llvm.so was not built";
  return describe_cpu("", 1).features < CpuFeatures::avx2 ? "short ways are those of AVX2" : nullptr;
}

// `fill` writes the inputs.
template <typename Fill>
void expect_same_bits(const Case& wanted_case, std::int64_t rows, const Fill& fill) {
  const Coded coded(wanted_case);
  const auto run = [&](CpuFeatures features) {
    RowBuffers buffers(coded.program, rows, 3);
    fill(buffers, coded.program);
    const int over = wanted_case.change == Change::dequantized_over ? buffers.lay_over() : 0;
    EXPECT_EQ(over, wanted_case.change == Change::dequantized_over ? 1 : 0);
    buffers.run(compiled(coded.program, features)->find<RowFunction>(coded.program.name()));
    EXPECT_TRUE(buffers.is_intact());
    return buffers;
  };
  const RowBuffers wanted = run(CpuFeatures::baseline);
  for (const CpuFeatures features : {CpuFeatures::avx2, CpuFeatures::avx512}) {
    if (features > describe_cpu("", 1).features) continue;
    EXPECT_EQ(difference(coded.program, wanted, run(features)), "")
        << cpu_features_text(features) << " " << static_cast<int>(wanted_case.made) << " " << wanted_case.group << " "
        << static_cast<int>(wanted_case.change);
  }
}

TEST(ShortWays, GiveTheBitsOfTheLongOnes) {
  if (const char* why = missing()) GTEST_SKIP() << why;
  std::uint32_t seed = 1;
  const auto compare = [&](const Case& wanted) {
    const std::int64_t rows = 192'000 / wanted.columns;
    ++seed;
    expect_same_bits(wanted, rows, [&](RowBuffers& buffers, const RowProgram& program) {
      Inputs(seed).fill(buffers, program, rows);
    });
  };
  for (const Made made : {Made::of_rows, Made::of_sums, Made::by_silu, Made::as_read})
    for (const DType codes : {DType::i8, DType::f8e4m3})
      for (const std::int64_t group : {0, 16, 32, 128}) compare({.made = made, .codes = codes, .group = group});
  for (const Made made : {Made::of_rows, Made::of_sums})
    for (const DType codes : {DType::i8, DType::f8e4m3})
      for (const std::int64_t group : {0, 32, 32, 32})
        compare({.made = made, .codes = codes, .group = group, .change = Change::shared_weights});
  // One block of columns, more than eight groups, and groups that are no power of two.
  for (const auto& [columns, group] : {std::pair(32, 32), {1152, 96}, {1120, 224}, {4096, 128}, {4096, 16}, {1152, 0}})
    for (const Made made : {Made::of_rows, Made::of_sums, Made::by_silu, Made::as_read})
      compare({.made = made, .group = group, .columns = columns});
  for (const Change change : kChanges)
    for (const std::int64_t group : {0, 32}) compare(changed(change, group));
  for (const Made made : {Made::of_rows, Made::by_silu, Made::as_read})
    for (const DType codes : {DType::i8, DType::f8e4m3})
      for (const Change change : kReadings)
        for (const std::int64_t group : {0, 32})
          compare({.made = made, .codes = codes, .group = group, .change = change});
}

// A group's scale reveals its largest value: that of a single operand, of each one in turn. With a large weight, the
// values of small quotients are above the lower limit of the scales.
TEST(ShortWays, NoQuotientOfSiluIsInTheMiddleOfTwoBfloatsButTinyOnes) {
  if (const char* why = missing()) GTEST_SKIP() << why;
  constexpr Case kCase{.made = Made::by_silu, .codes = DType::i8};
  constexpr float kLargest = 0x1p64f;  // of a row that takes the fast path
  for (const float weight : {1.0f, kLargest}) {
    const auto fill = [weight](RowBuffers& buffers, const RowProgram& program) {
      auto* x = reinterpret_cast<std::uint16_t*>(buffers.memory(0).data());
      auto* w = reinterpret_cast<std::uint16_t*>(buffers.memory(1).data());
      std::fill_n(x, 0x10000 * program.group, std::uint16_t{0});
      std::fill_n(w, 0x10000 * program.group, f32_to_bf16(weight));
      for (std::uint32_t code = 0; code < 0x10000; ++code) {
        const double number = bf16_to_f32(static_cast<std::uint16_t>(code));
        const bool is_short = std::abs(number / (1 + std::exp(-number))) * weight <= kLargest;
        if (is_short) x[code * program.group] = static_cast<std::uint16_t>(code);
      }
    };
    expect_same_bits(kCase, 0x10000 / (Coded(kCase).program.columns / kCase.group), fill);
  }
}

// Nor if even the largest weight leaves a quotient below the limit of the scales.
TEST(ShortWays, QuotientsOfSiluRoundHalfUp) {
  if (const char* why = missing()) GTEST_SKIP() << why;
  constexpr std::int64_t kColumns = 128, kRows = 0x10000 / kColumns;
  RowProgram program;
  program.columns = kColumns;
  program.buffers = {{.dtype = DType::bf16, .row_stride = kColumns},
                     {.dtype = DType::f32, .is_output = true, .row_stride = kColumns}};
  const int x = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  const int divisor = program.add({.op = RowOp::bf16_silu_divisor, .a = x});
  program.stores.push_back({1, program.add({.op = RowOp::div, .a = x, .b = divisor}), RowDomain::element});
  program.finish();
  RowBuffers buffers(program, kRows, 3);
  auto* codes = reinterpret_cast<std::uint16_t*>(buffers.memory(0).data());
  std::iota(codes, codes + 0x10000, std::uint16_t{0});
  buffers.run(compiled(program, CpuFeatures::avx2)->find<RowFunction>(program.name()));
  for (const float quotient : buffers.stored(0)) {
    const float came = row_half_up_bf16(quotient), wanted = bf16_to_f32(f32_to_bf16(quotient));
    if (std::isnan(quotient)) {
      ASSERT_TRUE(std::isnan(came));
    } else if (quotient != 0 && std::abs(quotient) < 0x1p-126f) {
      ASSERT_LE(std::abs(came), 0x1p-126f) << quotient;
    } else {
      ASSERT_EQ(came, wanted) << quotient;
    }
  }
}

}  // namespace weft::short_ways_test
