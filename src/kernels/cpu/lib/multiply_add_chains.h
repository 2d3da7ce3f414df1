#pragma once

// Multiply-adds from registers alone, for each instruction set: what a core computes at most.

#include <cstdint>

#include "tensor/device.h"

namespace weft::cpu {

struct MultiplyAddChains {
  std::int64_t lanes;  // sums that `run` continues at once: each gets one multiply-add a turn
  // Gives something that depends on every multiply-add, so that none is left out.
  float (*run)(float factor, std::int64_t turns);
};

extern const MultiplyAddChains multiply_add_chains_baseline, multiply_add_chains_avx2, multiply_add_chains_avx512;

inline const MultiplyAddChains& multiply_add_chains(CpuFeatures features) {
  return features >= CpuFeatures::avx512 ? multiply_add_chains_avx512
         : features >= CpuFeatures::avx2 ? multiply_add_chains_avx2
                                         : multiply_add_chains_baseline;
}

}  // namespace weft::cpu
