// The arithmetic of fast paths, number by number: roundings to bf16 and quotients in fewer operations.

#include <cmath>

#include <gtest/gtest.h>

#include "codegen/row_math.h"

namespace weft::short_ways_math_test {

TEST(ShortWaysMath, SplittingRoundsToBfloat) {
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

TEST(ShortWaysMath, FusingRoundsToBfloat) {
  for (const std::uint32_t exponent : {1u, 2u, 100u, 127u, 128u, 200u, 237u})
    for (std::uint32_t significand = 0; significand < 0x800000u; significand += exponent == 127 ? 1 : 61) {
      const float a = float_of_bits(exponent << 23 | significand);
      ASSERT_EQ(row_fused_bf16(a), bf16_to_f32(f32_to_bf16(a))) << a;
      ASSERT_EQ(row_fused_bf16(-a), -row_fused_bf16(a)) << a;
    }
  for (const float zero : {0.0f, -0.0f}) EXPECT_EQ(row_fused_bf16(zero), 0.0f);
  for (std::uint32_t bits = 1; bits < 0x800000u; bits += 1013) {
    const float tiny = row_fused_bf16(float_of_bits(bits));
    EXPECT_TRUE(tiny > 0 && tiny <= 0x1p-126f) << bits;
    EXPECT_EQ(row_fused_bf16(-float_of_bits(bits)), -tiny) << bits;
  }
  for (const float far : {0x1p113f, 0x1p127f, __builtin_inff(), -__builtin_inff(), __builtin_nanf("")})
    EXPECT_FALSE(std::isfinite(row_fused_bf16(far))) << far;
}

TEST(ShortWaysMath, ShorterQuotientsAreDivisionsOfBfloats) {
  const auto expect_division = [](float a, float b) {
    const float c = 1.0f / b;
    ASSERT_EQ(row_shorter_quotient(a, row_inverse_rest(b, c), c), a / b) << a << " " << b;
  };
  for (std::uint32_t code = 128; code < 256; ++code) {
    const auto a = static_cast<float>(code);
    for (std::uint32_t scale = code % 3; scale < 0x800000u; scale += 1021)
      expect_division(a, float_of_bits(0x3f800000u + scale));
    // Next to the middle of two codes, and values whose inverse is hard to round.
    for (std::uint32_t middle = 1; middle < 512; middle += 2)
      for (std::uint32_t i = 0; i < 8; ++i)
        for (const float power : {0x1p-43f, 1.0f, 0x1p50f})
          expect_division(a * power, float_of_bits(bits_of_float(a / static_cast<float>(middle)) - 4 + i) * power);
  }
}

}  // namespace weft::short_ways_math_test
