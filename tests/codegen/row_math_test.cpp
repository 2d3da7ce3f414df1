// row_math.h on single floats, compared with the standard library.

#include "codegen/row_math.h"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace weft::row_math_test {

TEST(RowMath, HasThePowersOfTwoBesideEveryNumber) {
  for (std::uint64_t bits = 0; bits < 1ull << 32; bits += 4093) {
    const float a = float_of_bits(static_cast<std::uint32_t>(bits));
    if (!std::isfinite(a) || a == 0) continue;
    int exponent = 0;
    const float fraction = std::frexp(a, &exponent);
    const float down = std::copysign(std::ldexp(1.0f, exponent - 1), a);
    const float up = std::abs(fraction) == 0.5f ? down : std::copysign(std::ldexp(1.0f, exponent), a);
    ASSERT_EQ(row_power_of_two_down(a), down) << a;
    ASSERT_EQ(row_power_of_two_up(a), up) << a;
  }
}

TEST(RowMath, LeavesPowersOfTwoAndWhatHasNoneAsTheyAre) {
  const auto stays = [](float a) {
    EXPECT_EQ(bits_of_float(row_power_of_two_up(a)), bits_of_float(a)) << a;
    EXPECT_EQ(bits_of_float(row_power_of_two_down(a)), bits_of_float(a)) << a;
  };
  for (int exponent = -149; exponent < 128; ++exponent)
    for (const float sign : {1.0f, -1.0f}) stays(std::ldexp(sign, exponent));
  for (const std::uint32_t bits : {0u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffffffffu})
    stays(float_of_bits(bits));
}

}  // namespace weft::row_math_test
