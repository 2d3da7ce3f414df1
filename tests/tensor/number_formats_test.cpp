// The small floating formats: every code widens and rounds back to itself, and rounding is to the nearest code. The
// nearest code is found by search over the widened codes, which shares nothing with the bit tricks under test.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/bfloat16.h"
#include "tensor/float16.h"
#include "tensor/float4.h"
#include "tensor/float8.h"
#include "tests/tensor/random_source.h"

namespace weft::number_formats_test {

struct Format {
  std::string name;
  std::uint32_t codes;
  std::uint32_t sign_bit;
  double limit;  // the value that the code after the largest one would have
  bool saturates;
  std::function<float(std::uint32_t)> widen;
  std::function<std::uint32_t(float)> round;
};

const std::vector<Format> kFormats = {
    {"f16", 1u << 16, 0x8000u, 65536.0, false,
     [](std::uint32_t c) { return f16_to_f32(static_cast<std::uint16_t>(c)); }, f32_to_f16},
    {"bf16", 1u << 16, 0x8000u, 0x1p128, false,
     [](std::uint32_t c) { return bf16_to_f32(static_cast<std::uint16_t>(c)); }, f32_to_bf16},
    {"f8e4m3", 256, 0x80u, 480.0, true, [](std::uint32_t c) { return f8e4m3_to_f32(static_cast<std::uint8_t>(c)); },
     f32_to_f8e4m3},
    {"f8e4m3fnuz", 256, 0x80u, 256.0, false,
     [](std::uint32_t c) { return f8e4m3fnuz_to_f32(static_cast<std::uint8_t>(c)); }, f32_to_f8e4m3fnuz},
    {"f8e5m2", 256, 0x80u, 65536.0, false, [](std::uint32_t c) { return f8e5m2_to_f32(static_cast<std::uint8_t>(c)); },
     f32_to_f8e5m2},
    {"f4e2m1", 16, 0x8u, 8.0, true, [](std::uint32_t c) { return f4e2m1_to_f32(static_cast<std::uint8_t>(c)); },
     f32_to_f4e2m1},
};

// Finite values without sign, in order of code.
std::vector<double> magnitudes(const Format& format) {
  std::vector<double> values;
  for (std::uint32_t code = 0; code < format.sign_bit && std::isfinite(format.widen(code)); ++code)
    values.push_back(format.widen(code));
  return values;
}

// The code nearest to a positive finite number, a tie to the even code; values.size() when it is beyond the largest.
std::uint32_t nearest_code(const std::vector<double>& values, double limit, double x) {
  const auto count = static_cast<std::uint32_t>(values.size());
  if (x >= limit) return count;
  const auto high = static_cast<std::uint32_t>(std::upper_bound(values.begin(), values.end(), x) - values.begin());
  const double to_low = x - values[high - 1];
  const double to_high = (high < count ? values[high] : limit) - x;
  if (to_low != to_high) return to_low < to_high ? high - 1 : high;
  return high % 2 == 0 ? high : high - 1;
}

TEST(NumberFormats, EveryCodeComesBack) {
  for (const Format& format : kFormats)
    for (std::uint32_t code = 0; code < format.codes; ++code) {
      const float value = format.widen(code);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(format.widen(format.round(value)))) << format.name << " " << code;
      } else {
        ASSERT_EQ(format.round(value), code) << format.name;
      }
    }
}

TEST(NumberFormats, MagnitudesRiseWithTheCode) {
  for (const Format& format : kFormats) {
    const std::vector<double> values = magnitudes(format);
    EXPECT_EQ(values[0], 0.0) << format.name;
    for (std::size_t i = 1; i < values.size(); ++i) ASSERT_LT(values[i - 1], values[i]) << format.name << " " << i;
  }
}

TEST(NumberFormats, RoundToTheNearestCodeTiesToEven) {
  for (const Format& format : kFormats) {
    const std::vector<double> values = magnitudes(format);
    const auto check = [&](float x) {
      if (x <= 0.0f || !std::isfinite(x)) return;
      const std::uint32_t nearest = nearest_code(values, format.limit, x);
      if (nearest < values.size()) {
        ASSERT_EQ(format.round(x), nearest) << format.name << " " << x;
        const std::uint32_t negative = format.name == "f8e4m3fnuz" && nearest == 0 ? 0 : nearest | format.sign_bit;
        ASSERT_EQ(format.round(-x), negative) << format.name << " " << -x;
      } else if (format.saturates) {
        ASSERT_EQ(format.round(x), values.size() - 1) << format.name << " " << x;
      } else {
        ASSERT_FALSE(std::isfinite(format.widen(format.round(x)))) << format.name << " " << x;
      }
    };
    for (std::size_t i = 1; i <= values.size(); ++i) {
      const double high = i < values.size() ? values[i] : format.limit;
      const auto middle = static_cast<float>((values[i - 1] + high) / 2);
      check(middle);
      check(std::nextafter(middle, 0.0f));
      check(std::nextafter(middle, std::numeric_limits<float>::infinity()));
      if (values.size() > 4096) i += 6;
    }
    RandomSource random(4);
    for (int i = 0; i < 2000; ++i) check(float_of_bits(static_cast<std::uint32_t>(random.bits()) & kFloatMagnitude));
  }
}

TEST(NumberFormats, KeepInfinityAndNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(f32_to_f16(infinity), 0x7c00u);
  EXPECT_EQ(f32_to_f16(-infinity), 0xfc00u);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00u);
  EXPECT_EQ(f32_to_bf16(infinity), 0x7f80u);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80u);
  EXPECT_EQ(f32_to_f8e5m2(-infinity), 0xfcu);
  EXPECT_EQ(f32_to_f8e4m3(448.0f), 0x7eu);
  EXPECT_EQ(f32_to_f8e4m3(464.0f), 0x7eu);
  EXPECT_EQ(f32_to_f8e4m3(1e30f), 0x7eu);
  EXPECT_EQ(f32_to_f8e4m3(-infinity), 0xfeu);
  EXPECT_EQ(f32_to_f8e4m3fnuz(-0.0f), 0u);
  EXPECT_EQ(f32_to_f8e4m3fnuz(infinity), 0x80u);
  EXPECT_EQ(f32_to_f4e2m1(infinity), 0x7u);
  EXPECT_EQ(f32_to_f4e2m1(-infinity), 0xfu);
  for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0xffffffffu})
    for (const Format& format : kFormats) {
      if (format.name == "f4e2m1") continue;
      EXPECT_TRUE(std::isnan(format.widen(format.round(float_of_bits(bits))))) << format.name;
    }
}

TEST(NumberFormats, ScalesArePowersOfTwo) {
  for (std::uint32_t code = 0; code < 255; ++code) {
    const float value = f8e8m0_to_f32(static_cast<std::uint8_t>(code));
    EXPECT_EQ(value, std::ldexp(1.0, static_cast<int>(code) - 127));
    EXPECT_EQ(f32_to_f8e8m0(value), code == 0 ? 0u : code);
    EXPECT_EQ(f32_to_f8e8m0(-value), code == 0 ? 0u : code);
  }
  EXPECT_TRUE(std::isnan(f8e8m0_to_f32(255)));
  EXPECT_EQ(f32_to_f8e8m0(std::numeric_limits<float>::infinity()), 255u);
  EXPECT_EQ(f32_to_f8e8m0(1.49f), 127u);
  EXPECT_EQ(f32_to_f8e8m0(1.5f), 128u);
}

TEST(NumberFormats, RoundingToOddThenDownIsOneRounding) {
  const std::vector<double> values = magnitudes(kFormats[0]);
  RandomSource random(5);
  for (int i = 0; i < 2000; ++i) {
    const auto code = static_cast<std::size_t>(random.integer(1, static_cast<std::int64_t>(values.size()) - 2));
    const double middle = (values[code] + values[code + 1]) / 2;
    for (const double x : {middle, std::nextafter(middle, 0.0), std::nextafter(middle, 1e9)})
      ASSERT_EQ(f32_to_f16(round_to_odd(x)), nearest_code(values, 65536.0, x)) << x;
  }
  EXPECT_EQ(f32_to_bf16(round_to_odd(1e300)), 0x7f80u);
  EXPECT_EQ(f32_to_f16(round_to_odd(-1e-300)), 0x8000u);
}

TEST(NumberFormats, NibblesAreLowFirst) {
  std::vector<std::uint8_t> packed = {0x21, 0x43};
  EXPECT_EQ(load_nibble(packed.data(), 0), 1);
  EXPECT_EQ(load_nibble(packed.data(), 3), 4);
  store_nibble(packed.data(), 2, 0xf);
  store_nibble(packed.data(), 1, 0x0);
  EXPECT_EQ(packed, (std::vector<std::uint8_t>{0x01, 0x4f}));
}

}  // namespace weft::number_formats_test
