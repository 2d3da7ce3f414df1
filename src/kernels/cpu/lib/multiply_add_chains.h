#pragma once

// Multiply-adds from registers only, for each instruction set: the peak rates of a core.

#include <cstdint>

#include "tensor/device.h"

namespace weft::cpu {

struct MultiplyAddChains {
  std::int64_t operations;  // in a turn; a multiply-add counts as two
  // Returns a value that depends on each multiply-add, so that the compiler removes none.
  float (*run)(std::int64_t turns);
};

// By the type of the operands. Sums have 32 bits.
struct PeakChains {
  MultiplyAddChains floats, bfloats, integers;
};

// With the instructions of this level that the kernels of linear layers use. Below the levels with products of bf16,
// bf16 are multiplied as f32.
PeakChains peak_chains(CpuFeatures features);

extern const MultiplyAddChains kFloatChainsBaseline, kFloatChainsAvx2, kFloatChainsAvx512;
extern const MultiplyAddChains kIntegerChainsBaseline, kIntegerChainsAvx2, kIntegerChainsAvx512,
    kIntegerChainsAvx512Vnni, kIntegerChainsAmx;
extern const MultiplyAddChains kBfloatChainsAvx512Bf16, kBfloatChainsAmx;

}  // namespace weft::cpu
