// The bounds of the fast paths of rows, tested with numbers on either side of each bound.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "codegen/compile_rows.h"
#include "codegen/interpret_row_program.h"
#include "codegen/row_math.h"
#include "codegen/short_ways.h"
#include "codegen/simplify_rows.h"
#include "runtime/loaded_code.h"
#include "tests/codegen/random_rows.h"
#include "tests/test_context.h"

namespace weft::short_ways_bounds_test {

constexpr std::int64_t kColumns = 128, kGroup = 32;

// Codes of v = bf16(bf16(x * s) * w), scaled by its largest magnitudes. `floored` computes the base of the scales from
// them: for groups, or for the row if `group` is 0.
class Coded {
 public:
  using Floored = std::function<int(Coded&, int)>;

  explicit Coded(const Floored& floored, std::int64_t group = kGroup) {
    program.columns = kColumns;
    program.group = group;
    const int x = load(DType::bf16, RowDomain::element, kColumns), w = load(DType::bf16, RowDomain::element, kColumns);
    const int s = load(DType::f32, RowDomain::row, 1);
    const int v = bf16(binary(RowOp::mul, bf16(binary(RowOp::mul, x, s)), w));
    const int maximum = unary(group > 0 ? RowOp::group_max : RowOp::row_max, unary(RowOp::abs, v));
    const int scale = binary(RowOp::div, floored(*this, maximum), constant(448));
    int code = binary(RowOp::at_least, binary(RowOp::div, v, scale), constant(-448));
    code =
        program.add({.op = RowOp::convert, .a = binary(RowOp::at_most, code, constant(448)), .dtype = DType::f8e4m3});
    store(code, DType::f8e4m3, RowDomain::element, kColumns);
    if (group > 0) store(scale, DType::f32, RowDomain::group, kColumns / group);
    if (group == 0) store(scale, DType::f32, RowDomain::row, 1);
    simplify_rows(program);
    program.finish();
  }
  explicit Coded(std::int64_t group)
      : Coded([](Coded& coded, int maximum) { return coded.with(RowOp::at_least, maximum, 1e-10); }, group) {}
  Coded(const Coded&) = delete;

  int with(RowOp op, int a, double number) { return binary(op, a, constant(number)); }

  RowProgram program;

 private:
  int load(DType dtype, RowDomain domain, std::int64_t elements) {
    program.buffers.push_back({.dtype = dtype, .row_stride = elements});
    return program.add({.op = RowOp::load, .domain = domain, .buffer = static_cast<int>(program.buffers.size()) - 1});
  }
  void store(int value, DType dtype, RowDomain domain, std::int64_t elements) {
    program.buffers.push_back({.dtype = dtype, .is_output = true, .row_stride = elements});
    program.stores.push_back({static_cast<int>(program.buffers.size()) - 1, value, domain});
  }
  int unary(RowOp op, int a) { return program.add({.op = op, .a = a}); }
  int binary(RowOp op, int a, int b) { return program.add({.op = op, .a = a, .b = b}); }
  int constant(double number) { return program.add({.op = RowOp::constant, .number = number}); }
  int bf16(int a) { return program.add({.op = RowOp::convert, .a = a, .dtype = DType::bf16}); }
};

float below(float number) { return std::nextafter(number, 0.0f); }
float above(float number) { return std::nextafter(number, std::numeric_limits<float>::infinity()); }

TEST(ShortWaysBounds, ScalesAreMadeOfNoLessThanWhatHidesTinyNumbers) {
  const auto has_ways = [](RowOp op, float number, float least, float factor) {
    const Coded coded([&](Coded& made, int maximum) {
      return made.with(RowOp::mul, made.with(RowOp::at_least, made.with(op, maximum, number), least), factor);
    });
    const auto is_quotient = [](const RowValue& value) { return value.op == RowOp::short_quotient; };
    EXPECT_EQ(std::count_if(coded.program.values.begin(), coded.program.values.end(), is_quotient), 1);
    return find_short_ways(coded.program).has_value();
  };
  constexpr float kLeast = 0x1p-58f;
  // With these factors, the scales are those for which codes have a fast quotient.
  EXPECT_TRUE(has_ways(RowOp::mul, 0x1p-20f, kLeast, 0x1p26f));
  EXPECT_FALSE(has_ways(RowOp::mul, 0x1p-20f, below(kLeast), 0x1p26f));
  EXPECT_TRUE(has_ways(RowOp::mul, below(1), 1e-9f, 2));
  EXPECT_FALSE(has_ways(RowOp::mul, above(1), 1e-9f, 2));
  EXPECT_TRUE(has_ways(RowOp::div, above(1), 1e-9f, 2));
  EXPECT_FALSE(has_ways(RowOp::div, below(1), 1e-9f, 2));
}

// A row of x, x / 2, ... x / 128 over and over, by s, by w.
struct Row {
  float x, s, w;
  bool is_short;  // whether it has fast paths
};

// A value of x * s that only the fallback rounds to 0. Its v, kept in scratch memory, shows which path its row took.
constexpr float kTiny = 0x1p-140f;

std::vector<float> kept(RowBuffers& buffers, const Coded& coded) {
  const int v = find_short_ways(coded.program)->v;
  const int slot = coded.program.values[static_cast<std::size_t>(v)].slot;
  const std::span<std::byte> scratch = buffers.memory(coded.program.buffers.size());
  const auto* floats = reinterpret_cast<const float*>(scratch.data());
  const float* first = floats + coded.program.slots[static_cast<std::size_t>(slot)];
  return {first, first + kColumns};
}

// Returns the path of the row; its codes and scales are compared with the interpreter's.
bool takes_short_way(const Coded& coded, RowFunction* function, const Row& row) {
  RowBuffers buffers(coded.program, 1, 1);
  auto* x = reinterpret_cast<std::uint16_t*>(buffers.memory(0).data());
  auto* w = reinterpret_cast<std::uint16_t*>(buffers.memory(1).data());
  *reinterpret_cast<float*>(buffers.memory(2).data()) = row.s;
  for (std::int64_t i = 0; i < kColumns; ++i) {
    x[i] = f32_to_bf16(std::ldexp(row.x, -static_cast<int>(i % 8)));
    w[i] = f32_to_bf16(row.w);
  }
  constexpr std::int64_t kTinyColumn = kColumns - 3;
  x[kTinyColumn] = f32_to_bf16(kTiny / row.s);
  w[kTinyColumn] = f32_to_bf16(1);
  buffers.run(function);
  const auto wanted = interpret_row_program(coded.program, buffers.data(), 1);
  for (std::size_t store = 0; store < wanted.size(); ++store) {
    const std::vector<float> came = buffers.stored(store);
    for (std::size_t i = 0; i < came.size(); ++i)
      EXPECT_TRUE((came[i] == static_cast<float>(wanted[store][i]) &&
                   std::signbit(came[i]) == std::signbit(wanted[store][i])) ||
                  (std::isnan(came[i]) && std::isnan(wanted[store][i])))
          << came[i] << " for " << wanted[store][i] << " of " << row.x << " " << row.w;
  }
  const std::vector<float> v = kept(buffers, coded);  // even columns may be stored apart from odd ones
  return std::count(v.begin(), v.end(), kTiny) == 1;
}

class ShortWaysBoundsOf : public testing::TestWithParam<std::int64_t> {};

TEST_P(ShortWaysBoundsOf, AreThoseOfTheLargestValueAndOfTheLargestWeight) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  if (describe_cpu("", 1).features < CpuFeatures::avx2) GTEST_SKIP() << "short ways are those of AVX2";
  const Coded coded(GetParam());
  ASSERT_TRUE(find_short_ways(coded.program));
  std::string problem;
  const auto object = compile_rows(coded.program, CpuFeatures::avx2, problem);
  ASSERT_EQ(problem, "");
  const auto code = LoadedCode::load(object);
  auto* function = code->find<RowFunction>(coded.program.name());
  constexpr float kStep = 1 + 0x1p-7f;   // to the next bf16, of a power of two
  constexpr float kBelow = 2 - 0x1p-7f;  // the last bf16 before a power of two, of the one before
  const Row rows[] = {
      {0x1p127f, 0x1p-120f, 0x1p56f * kBelow, true},
      {0x1p127f, 0x1p-120f, 0x1p57f, true},  // the largest value is 2^64
      {0x1p127f, 0x1p-120f, -0x1p57f, true},
      {0x1p127f, 0x1p-120f, 0x1p57f * kStep, false},
      {-0x1p127f, 0x1p-120f, 0x1p57f * kStep, false},
      {0x1p90f, 0x1p-120f, 0x1p64f * kBelow, true},
      {0x1p90f, 0x1p-120f, 0x1p65f, false},  // a weight is
      {0x1p90f, 0x1p-120f, -0x1p65f, false},
      {0x1p127f, 0x1p-7f, 0x1p-100f, false},   // x * s is too large to be rounded in fewer steps
      {0x1p127f, 0x1p-12f, 0x1p-100f, false},  // here in some columns only
      {0x1p127f, 0x1p-20f, 0x1p-100f, true},
  };
  for (const Row& row : rows)
    EXPECT_EQ(takes_short_way(coded, function, row), row.is_short) << row.x << " " << row.s << " " << row.w;
}

INSTANTIATE_TEST_SUITE_P(Groups, ShortWaysBoundsOf, testing::Values(0, kGroup));

}  // namespace weft::short_ways_bounds_test
