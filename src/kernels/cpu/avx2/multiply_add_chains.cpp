#define WEFT_VECTORS "kernels/cpu/lib/vector_avx2.h"

#include "kernels/cpu/lib/vector_chains.h"

namespace weft::cpu {

const MultiplyAddChains kFloatChainsAvx2 = kFloatChains, kIntegerChainsAvx2 = kIntegerChains;

}  // namespace weft::cpu
