#define WEFT_VECTORS "kernels/cpu/lib/vector_baseline.h"

#include "kernels/cpu/lib/vector_chains.h"

namespace weft::cpu {

const MultiplyAddChains kFloatChainsBaseline = kFloatChains, kIntegerChainsBaseline = kIntegerChains;

}  // namespace weft::cpu
