#include "tensor/reference_math.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tensor/random_source.h"

namespace weft::reference_math_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

using FloatFunction = float (*)(float);
using DoubleFunction = double (*)(double);

// Distance in units in the last place of an f32 of the size of `wanted`, denormals included.
double units_off(float got, double wanted) {
  if (std::isinf(static_cast<float>(wanted))) return got == static_cast<float>(wanted) ? 0.0 : 1e9;
  if (!std::isfinite(got)) return 1e9;
  int exponent = 0;
  std::frexp(wanted, &exponent);
  return std::fabs(static_cast<double>(got) - wanted) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

// Patterns of every exponent and sign; the stride is odd, so that all low bits occur too.
void expect_within(FloatFunction function, DoubleFunction exact, double units) {
  constexpr std::uint64_t kStride = 4999;
  double worst = 0.0;
  float where = 0.0f;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += kStride) {
    const float x = float_of_bits(static_cast<std::uint32_t>(bits));
    if (std::isnan(x)) continue;
    const double off = units_off(function(x), exact(x));
    if (off > worst) {
      worst = off;
      where = x;
    }
  }
  EXPECT_LE(worst, units) << "at " << where;
}

double exact_sigmoid(double x) { return x >= 0 ? 1.0 / (1.0 + std::exp(-x)) : std::exp(x) / (1.0 + std::exp(x)); }

TEST(ReferenceMath, StaysWithinTheDocumentedErrors) {
  expect_within(reference_exp, std::exp, 1.0);
  expect_within(reference_sigmoid, exact_sigmoid, 2.5);
  expect_within(reference_tanh, std::tanh, 1.0);
  expect_within(reference_erf, std::erf, 1.5);
}

TEST(ReferenceMath, ExpIsExactAtItsEnds) {
  EXPECT_EQ(reference_exp(0.0f), 1.0f);
  EXPECT_EQ(reference_exp(-0.0f), 1.0f);
  EXPECT_EQ(reference_exp(kInfinity), kInfinity);
  EXPECT_EQ(reference_exp(-kInfinity), 0.0f);
  EXPECT_EQ(reference_exp(88.8f), kInfinity);
  EXPECT_LT(reference_exp(88.7f), kInfinity);
  EXPECT_EQ(reference_exp(-103.9f), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(reference_exp(-104.0f), 0.0f);
  EXPECT_GT(reference_exp(-100.0f), 0.0f);
}

TEST(ReferenceMath, LimitsAndZerosAreRight) {
  EXPECT_EQ(reference_sigmoid(kInfinity), 1.0f);
  EXPECT_EQ(reference_sigmoid(-kInfinity), 0.0f);
  EXPECT_EQ(reference_sigmoid(0.0f), 0.5f);
  EXPECT_GT(reference_sigmoid(-95.0f), 0.0f);
  for (const FloatFunction odd : {reference_tanh, reference_erf}) {
    EXPECT_EQ(odd(kInfinity), 1.0f);
    EXPECT_EQ(odd(-kInfinity), -1.0f);
    EXPECT_EQ(bits_of_float(odd(-0.0f)), bits_of_float(-0.0f));
    EXPECT_EQ(bits_of_float(odd(0.0f)), 0u);
    EXPECT_EQ(odd(20.0f), 1.0f);
  }
  EXPECT_EQ(reference_rsqrt(0.25f), 2.0f);
  EXPECT_EQ(reference_rsqrt(0.0f), kInfinity);
  EXPECT_TRUE(std::isnan(reference_rsqrt(-1.0f)));
  EXPECT_EQ(reference_silu(0.0f), 0.0f);
  EXPECT_EQ(reference_silu(100.0f), 100.0f);
}

TEST(ReferenceMath, NanGivesNan) {
  for (const FloatFunction function :
       {reference_exp, reference_sigmoid, reference_tanh, reference_erf, reference_rsqrt, reference_silu}) {
    EXPECT_TRUE(std::isnan(function(kNan)));
    EXPECT_TRUE(std::isnan(function(float_of_bits(0x7f800001u))));
    EXPECT_TRUE(std::isnan(function(float_of_bits(0xffffffffu))));
  }
}

TEST(ReferenceMath, TanhAndErfAreOdd) {
  RandomSource random(8);
  for (int i = 0; i < 10000; ++i) {
    const float x = random.real(0.0f, 6.0f);
    ASSERT_EQ(reference_tanh(-x), -reference_tanh(x));
    ASSERT_EQ(reference_erf(-x), -reference_erf(x));
  }
}

TEST(ReferenceMath, RowSumIsSixtyFourPartialSumsAndATree) {
  RandomSource random(9);
  for (const std::int64_t count : {0, 1, 63, 64, 65, 128, 576, 1000}) {
    std::vector<float> x(static_cast<std::size_t>(count));
    for (float& value : x) value = random.real(-1.0f, 1.0f);
    std::vector<float> partial(64, 0.0f);
    for (std::size_t i = 0; i < x.size(); ++i) partial[i % 64] += x[i];
    while (partial.size() > 1) {
      const std::size_t width = partial.size() / 2;
      for (std::size_t j = 0; j < width; ++j) partial[j] += partial[j + width];
      partial.resize(width);
    }
    EXPECT_EQ(bits_of_float(reference_row_sum(x.data(), count)), bits_of_float(partial[0])) << count;
  }
}

// The wanted bits were computed outside of C++, with one numpy float32 operation for each operation of the header: a
// compiler that fuses or reorders any of them fails here.
TEST(ReferenceMath, GivesTheBitsOfItsOperationsOneByOne) {
  const std::vector<float> inputs = {-87.5f, -3.4373179f, -0.3f, 1e-4f, 0.7f, 1.1f, 2.5f, 10.0f};
  std::vector<std::uint32_t> bits;
  for (const float x : inputs)
    for (const FloatFunction function : {reference_exp, reference_sigmoid, reference_tanh, reference_erf})
      bits.push_back(bits_of_float(function(x)));
  const std::vector<std::uint32_t> wanted = {
      0x006cb2bcu, 0x006cb2bcu, 0xbf800000u, 0xbf800000u, 0x3d03b090u, 0x3cff2ce2u, 0xbf7f78a7u, 0xbf7fffecu,
      0x3f3da643u, 0x3ed9e2abu, 0xbe9526eeu, 0xbea841c5u, 0x3f800347u, 0x3f0001a4u, 0x38d1b717u, 0x38eca365u,
      0x4000e153u, 0x3f2b0e5au, 0x3f1ab7d9u, 0x3f2d8461u, 0x40404442u, 0x3f40110cu, 0x3f4ced81u, 0x3f61551eu,
      0x4142eb7fu, 0x3f6c948fu, 0x3f7c92c1u, 0x3f7fe554u, 0x46ac14eeu, 0x3f7ffd06u, 0x3f800000u, 0x3f800000u};
  EXPECT_EQ(bits, wanted);
}

// As above; arguments whose result is not the nearest float, so that a lost remainder of a pair is visible, and both
// sides of the bounds between its forms.
TEST(ReferenceMath, TanhGivesTheBitsOfItsOperationsOneByOne) {
  const std::vector<std::pair<float, std::uint32_t>> wanted = {
      {0.09593267f, 0x3dc3de9eu}, {0.14378738f, 0x3e123b5eu},    {0.28534454f, 0x3e8e419du},
      {0.92731696f, 0x3f3ab610u}, {1.0867897f, 0x3f4bb338u},     {2.2197673f, 0x3f7a0734u},
      {8.0f, 0x3f7ffffcu},        {0x1.fffffep-5f, 0x3d7faaccu}, {-0.0625f, 0xbd7faaccu},
      {8.66434f, 0x3f7fffffu},    {0x1.154248p+3f, 0x3f800000u}};
  for (const auto& [x, bits] : wanted) EXPECT_EQ(bits_of_float(reference_tanh(x)), bits) << x;
}

// gelu_tanh adds 1 to tanh near -1: a last bit of tanh is many bits of the sum.
TEST(ReferenceMath, TanhIsNearlyAlwaysTheNearestFloatWhereOnePlusTanhCancels) {
  RandomSource random(10);
  int other = 0;
  for (int i = 0; i < 100000; ++i) {
    const float x = random.real(-8.66f, -1.0f);
    other += reference_tanh(x) != static_cast<float>(std::tanh(static_cast<double>(x)));
  }
  EXPECT_LT(other, 100);
}

}  // namespace weft::reference_math_test
