#include <cmath>

#include <gtest/gtest.h>

#include "kernels/cpu/lib/multiply_add_chains.h"

namespace weft::cpu::cpu_multiply_add_chains_test {

constexpr CpuFeatures kLevels[] = {CpuFeatures::baseline, CpuFeatures::avx2, CpuFeatures::avx512};

// Runs `check(chains, floats in a register)` for every instruction set of this host.
template <class Check>
void for_each_instruction_set(Check check) {
  std::int64_t floats = 4;
  for (const CpuFeatures level : kLevels) {
    if (level > describe_cpu("", 1).host) break;
    SCOPED_TRACE(cpu_features_text(level));
    check(multiply_add_chains(level), floats);
    floats *= 2;
  }
}

// A chain starts at the factor f, and an iteration computes f * x + f from x. The result is the sum of the first lanes
// of all chains, with the first one twice. With f = 1/2 a chain is 1 - 2^-(turns + 1), exact while that fits 24 bits;
// then it rounds to 1 and stays.
TEST(CpuMultiplyAddChains, GiveWhatArithmeticSays) {
  for_each_instruction_set([](const MultiplyAddChains& chains, std::int64_t floats) {
    const float sums = static_cast<float>(chains.lanes / floats + 1);
    for (const int turns : {0, 1, 2, 5, 10})
      EXPECT_EQ(chains.run(0.5f, turns), sums * (1 - std::ldexp(1.0f, -(turns + 1)))) << turns << " turns";
    for (const int turns : {24, 1000}) EXPECT_EQ(chains.run(0.5f, turns), sums) << turns << " turns";
    EXPECT_EQ(chains.run(1.0f, 9), sums * 10);
    EXPECT_EQ(chains.run(0.0f, 9), 0);
  });
}

// Two units with a latency of four or five cycles need at least ten chains.
TEST(CpuMultiplyAddChains, CountWholeRegistersOfLanesEnoughToHideTheLatency) {
  for_each_instruction_set([](const MultiplyAddChains& chains, std::int64_t floats) {
    EXPECT_EQ(chains.lanes % floats, 0);
    EXPECT_GE(chains.lanes / floats, 10);
    EXPECT_EQ(chains.lanes / floats, multiply_add_chains_baseline.lanes / 4) << "as many chains everywhere";
  });
}

TEST(CpuMultiplyAddChains, AreChosenByWhatTheProcessorHas) {
  EXPECT_EQ(&multiply_add_chains(CpuFeatures::baseline), &multiply_add_chains_baseline);
  EXPECT_EQ(&multiply_add_chains(CpuFeatures::avx2), &multiply_add_chains_avx2);
  for (const CpuFeatures level :
       {CpuFeatures::avx512, CpuFeatures::avx512_vnni, CpuFeatures::avx512_bf16, CpuFeatures::amx})
    EXPECT_EQ(&multiply_add_chains(level), &multiply_add_chains_avx512);
}

}  // namespace weft::cpu::cpu_multiply_add_chains_test
