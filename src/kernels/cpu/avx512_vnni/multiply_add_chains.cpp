#define WEFT_VECTORS "kernels/cpu/lib/vector_avx512.h"

#include "kernels/cpu/lib/vector_chains.h"

namespace weft::cpu {

const MultiplyAddChains kIntegerChainsAvx512Vnni = kIntegerChains;

}  // namespace weft::cpu
