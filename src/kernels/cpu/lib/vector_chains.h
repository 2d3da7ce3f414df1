#pragma once

// The chains of multiply_add_chains.h with the operations of WEFT_VECTORS.

#include WEFT_VECTORS

#include "kernels/cpu/lib/multiply_add_chains.h"

namespace weft::cpu {
namespace {

// More than the latency of a multiply-add times the number of units that compute it.
constexpr int kChains = 12;

template <typename Sum, typename MultiplyAdd>
WEFT_VECTOR Sum run_chains(std::int64_t turns, Sum first, MultiplyAdd multiply_add) {
  Sum sums[kChains];
  WEFT_UNROLL for (Sum& sum : sums) sum = first;
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    WEFT_UNROLL for (Sum& sum : sums) {
      sum = multiply_add(sum);
      WEFT_KEEP_ORDER("v", sum);
    }
  }
  Sum all = sums[0];
  WEFT_UNROLL for (int i = 1; i < kChains; ++i) all = add(all, sums[i]);
  return all;
}

float float_chains(std::int64_t turns) {
  const Floats half = spread(0.5F);  // the sums stay near 1
  const Floats sum = run_chains(
      turns, half, [=](Floats x) __attribute__((always_inline)) { return multiply_add(x, half, half); });
  float lanes[kLanes];
  store_floats(lanes, sum);
  return lanes[0];
}

float integer_chains(std::int64_t turns) {
  constexpr std::int32_t kOnes = 0x01010101;
  Codes ones = spread_four(&kOnes);
  const Codes sum = run_chains(
      turns, zero_codes(), [&](Codes x) __attribute__((always_inline)) {
        WEFT_KEEP_ORDER("v", ones);  // so that no product is computed before the loop
        return dot(x, ones, ones);
      });
  float lanes[kLanes];
  store_floats(lanes, as_floats(sum));
  return lanes[0];
}

constexpr MultiplyAddChains kFloatChains = {2 * kChains * kLanes, float_chains};
constexpr MultiplyAddChains kIntegerChains = {2 * 4 * kChains * kLanes, integer_chains};

#ifdef __AVX512BF16__
float bfloat_chains(std::int64_t turns) {
  constexpr std::int32_t kHalves = 0x3f003f00;
  const Codes halves = spread_four(&kHalves);
  const Floats sum = run_chains(
      turns, zero_floats(), [=](Floats x) __attribute__((always_inline)) { return bfloat_dot(x, halves, halves); });
  float lanes[kLanes];
  store_floats(lanes, sum);
  return lanes[0];
}

constexpr MultiplyAddChains kBfloatChains = {2 * 2 * kChains * kLanes, bfloat_chains};
#endif

}  // namespace
}  // namespace weft::cpu
