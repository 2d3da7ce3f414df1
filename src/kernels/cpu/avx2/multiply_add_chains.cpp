#define WEFT_FLOAT_VECTORS "kernels/cpu/lib/float_vector_avx2.h"

#include "kernels/cpu/lib/multiply_add_chains_skeleton.h"

namespace weft::cpu {

const MultiplyAddChains multiply_add_chains_avx2 = kMultiplyAddChains;

}  // namespace weft::cpu
