#include "kernels/cpu/lib/multiply_add_chains.h"

namespace weft::cpu {

PeakChains peak_chains(CpuFeatures features) {
  using enum CpuFeatures;
  PeakChains chains;
  chains.floats = features >= avx512 ? kFloatChainsAvx512 : features >= avx2 ? kFloatChainsAvx2 : kFloatChainsBaseline;
  chains.bfloats = features >= amx           ? kBfloatChainsAmx
                   : features >= avx512_bf16 ? kBfloatChainsAvx512Bf16
                                             : chains.floats;
  chains.integers = features >= amx           ? kIntegerChainsAmx
                    : features >= avx512_vnni ? kIntegerChainsAvx512Vnni
                    : features >= avx512      ? kIntegerChainsAvx512
                    : features >= avx2        ? kIntegerChainsAvx2
                                              : kIntegerChainsBaseline;
  return chains;
}

}  // namespace weft::cpu
