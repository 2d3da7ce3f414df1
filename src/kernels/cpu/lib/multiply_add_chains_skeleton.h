#pragma once

// The chains of one instruction set (WEFT_FLOAT_VECTORS: see float_vector_operations.h).

#include "kernels/cpu/lib/float_vector_operations.h"
#include "kernels/cpu/lib/multiply_add_chains.h"

namespace weft::cpu {
namespace {

// More than the latency of a multiply-add times the number of units that compute it.
constexpr int kChains = 12;

float run_chains(float factor, std::int64_t turns) {
  const Floats times = fill(factor);
  Floats sums[kChains];
  for (Floats& sum : sums) sum = times;
  for (std::int64_t turn = 0; turn < turns; ++turn)
#pragma GCC unroll 12
    for (Floats& sum : sums) sum = multiply_add(sum, times, times);
  for (const Floats& sum : sums) sums[0] += sum;
  return sums[0][0];
}

constexpr MultiplyAddChains kMultiplyAddChains = {kChains * kLanes, run_chains};

}  // namespace
}  // namespace weft::cpu
