#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/cpu/lib/multiply_add_chains.h"

namespace weft::cpu::cpu_multiply_add_chains_test {

using enum CpuFeatures;

// Two units with a latency of four or five cycles need at least ten chains; vector_chains.h has these.
constexpr std::int64_t kChains = 12;
constexpr int kTurns[] = {0, 1, 2, 5, 10};

std::int64_t lanes_of(CpuFeatures level) { return level >= avx512 ? 16 : level >= avx2 ? 8 : 4; }

// Runs `check(level, chains)` for every level without tiles that this host has.
template <class Check>
void for_each_level(Check check) {
  for (const CpuFeatures level : {baseline, avx2, avx512, avx512_vnni, avx512_bf16}) {
    if (level > describe_cpu("", 1).host) break;
    SCOPED_TRACE(cpu_features_text(level));
    check(level, peak_chains(level));
  }
}

// A chain starts at 1/2, and a turn computes x / 2 + 1/2 from x. The result is the sum of the first lanes of all
// chains. A chain is 1 - 2^-(turns + 1), exact while that fits 24 bits; then it rounds to 1 and stays.
TEST(CpuMultiplyAddChains, OfFloatsGiveWhatArithmeticSays) {
  for_each_level([](CpuFeatures, const PeakChains& chains) {
    for (const int turns : kTurns)
      EXPECT_EQ(chains.floats.run(turns), kChains * (1 - std::ldexp(1.0F, -(turns + 1)))) << turns << " turns";
    for (const int turns : {24, 1000}) EXPECT_EQ(chains.floats.run(turns), kChains) << turns << " turns";
  });
}

// A turn adds four products of ones to a lane of 32 bits, or two to each of its halves. The result has the bits of the
// sum of the first lanes.
TEST(CpuMultiplyAddChains, OfIntegersGiveWhatArithmeticSays) {
  for_each_level([](CpuFeatures level, const PeakChains& chains) {
    const std::int64_t of_turn = level >= avx512_vnni ? 4 : 2 + (2 << 16);
    for (const int turns : kTurns)
      EXPECT_EQ(std::bit_cast<std::int32_t>(chains.integers.run(turns)), kChains * of_turn * turns) << turns;
  });
}

// A turn adds two products of 1/2 and 1/2.
TEST(CpuMultiplyAddChains, OfBfloatsGiveWhatArithmeticSays) {
  if (describe_cpu("", 1).host < avx512_bf16) GTEST_SKIP() << "this processor has no products of bf16";
  const MultiplyAddChains chains = peak_chains(avx512_bf16).bfloats;
  for (const int turns : kTurns) EXPECT_EQ(chains.run(turns), kChains * 0.5F * static_cast<float>(turns)) << turns;
}

TEST(CpuMultiplyAddChains, OfTilesRun) {
  if (describe_cpu("", 1).host < amx) GTEST_SKIP() << "this processor has no AMX";
  const PeakChains chains = peak_chains(amx);
  // The first byte of 64 products of ones in each of 3 turns, and of a sum of f32 that is no longer what it began with.
  EXPECT_EQ(chains.integers.run(3), 3 * 64);
  chains.bfloats.run(3);
}

TEST(CpuMultiplyAddChains, CountTheOperationsOfATurn) {
  for (const CpuFeatures level : {baseline, avx2, avx512, avx512_vnni, avx512_bf16, amx}) {
    SCOPED_TRACE(cpu_features_text(level));
    const PeakChains chains = peak_chains(level);
    const std::int64_t vector = kChains * lanes_of(level);  // lanes of all chains
    EXPECT_EQ(chains.floats.operations, 2 * vector);
    EXPECT_EQ(chains.bfloats.operations, level == amx           ? 2 * 6 * 16 * 16 * 32
                                         : level == avx512_bf16 ? 2 * 2 * vector
                                                                : 2 * vector);
    EXPECT_EQ(chains.integers.operations, level == amx ? 2 * 6 * 16 * 16 * 64 : 2 * 4 * vector);
  }
}

}  // namespace weft::cpu::cpu_multiply_add_chains_test
