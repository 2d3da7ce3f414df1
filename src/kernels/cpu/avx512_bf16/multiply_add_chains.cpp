#define WEFT_VECTORS "kernels/cpu/lib/vector_avx512.h"

#include "kernels/cpu/lib/vector_chains.h"

namespace weft::cpu {

const MultiplyAddChains kBfloatChainsAvx512Bf16 = kBfloatChains;

}  // namespace weft::cpu
