#pragma once

// Multiply-adds from registers only, for each instruction set: the peak rate of a core.

#include <cstdint>

#include "tensor/device.h"

namespace weft::cpu {

struct MultiplyAddChains {
  std::int64_t lanes;  // sums of `run`; each gets one multiply-add per iteration
  // Returns a value that depends on each multiply-add, so that the compiler removes none.
  float (*run)(float factor, std::int64_t turns);
};

extern const MultiplyAddChains multiply_add_chains_baseline, multiply_add_chains_avx2, multiply_add_chains_avx512;

inline const MultiplyAddChains& multiply_add_chains(CpuFeatures features) {
  return features >= CpuFeatures::avx512 ? multiply_add_chains_avx512
         : features >= CpuFeatures::avx2 ? multiply_add_chains_avx2
                                         : multiply_add_chains_baseline;
}

}  // namespace weft::cpu
