#define WEFT_FLOAT_VECTORS "kernels/cpu/lib/float_vector_baseline.h"

#include "kernels/cpu/lib/multiply_add_chains_skeleton.h"

namespace weft::cpu {

const MultiplyAddChains multiply_add_chains_baseline = kMultiplyAddChains;

}  // namespace weft::cpu
