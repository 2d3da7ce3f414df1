// The emulated products of tiles have the bits of the instructions.

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/bfloat16.h"
#include "tensor/device.h"
#include "tests/kernels/amx_tile_calls.h"

namespace weft::cpu_amx_tiles_test {

bool has_amx() { return describe_cpu("", 1).host >= CpuFeatures::amx; }

// Numbers of which products and sums are ordinary, subnormal, infinite or NaN.
enum class Numbers { ordinary, near_the_smallest, any_bits };

std::uint16_t draw(Numbers numbers, std::mt19937& random) {
  const std::uint32_t bits = random();
  if (numbers == Numbers::any_bits) return static_cast<std::uint16_t>(bits);
  if (numbers == Numbers::near_the_smallest && bits % 8 == 0) return static_cast<std::uint16_t>(bits >> 16 & 0x80ff);
  const std::uint32_t exponent = numbers == Numbers::ordinary ? 0x3c00 + (bits & 0x0380) : 0x1e00 + (bits & 0x0380);
  return static_cast<std::uint16_t>((bits >> 16 & 0x807f) | exponent);
}

class AmxTiles : public testing::TestWithParam<Numbers> {};

TEST_P(AmxTiles, EmulatedDotsOfBf16HaveTheBitsOfTheInstruction) {
  if (!has_amx()) GTEST_SKIP() << "this host has no AMX";
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const int rows = 1 + round % 16, steps = 16 - round / 16 % 16;
    std::vector<std::uint16_t> a(static_cast<std::size_t>(rows * steps * 2)), b(static_cast<std::size_t>(steps * 32));
    for (std::uint16_t& x : a) x = draw(GetParam(), random);
    for (std::uint16_t& x : b) x = draw(GetParam(), random);
    std::vector<float> wanted(static_cast<std::size_t>(rows * 16));
    for (float& x : wanted)
      x = GetParam() == Numbers::near_the_smallest ? bf16_to_f32(static_cast<std::uint16_t>(random() & 0x81ff))
                                                   : bf16_to_f32(draw(GetParam(), random));
    std::vector<float> came = wanted;
    cpu::kAmxTileCallsInstructions.dot_bf16(rows, steps, a.data(), b.data(), wanted.data());
    cpu::kAmxTileCallsEmulated.dot_bf16(rows, steps, a.data(), b.data(), came.data());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (std::isnan(wanted[i]) && std::isnan(came[i])) continue;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wanted[i]), std::bit_cast<std::uint32_t>(came[i]))
          << "round " << round << ", element " << i << ": " << came[i] << ", wanted " << wanted[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Numbers, AmxTiles,
                         testing::Values(Numbers::ordinary, Numbers::near_the_smallest, Numbers::any_bits));

TEST(AmxTilesOfI8, EmulatedDotsHaveTheBitsOfTheInstruction) {
  if (!has_amx()) GTEST_SKIP() << "this host has no AMX";
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const int rows = 1 + round % 16, steps = 16 - round / 16 % 16;
    std::vector<std::int8_t> a(static_cast<std::size_t>(rows * steps * 4)), b(static_cast<std::size_t>(steps * 64));
    for (std::int8_t& x : a) x = static_cast<std::int8_t>(random());
    for (std::int8_t& x : b) x = static_cast<std::int8_t>(random());
    std::vector<std::int32_t> wanted(static_cast<std::size_t>(rows * 16));
    for (std::int32_t& x : wanted) x = static_cast<std::int32_t>(random());
    std::vector<std::int32_t> came = wanted;
    cpu::kAmxTileCallsInstructions.dot_i8(rows, steps, a.data(), b.data(), wanted.data());
    cpu::kAmxTileCallsEmulated.dot_i8(rows, steps, a.data(), b.data(), came.data());
    ASSERT_EQ(wanted, came) << "round " << round;
  }
}

}  // namespace weft::cpu_amx_tiles_test
