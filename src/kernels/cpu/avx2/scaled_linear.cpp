#define WEFT_FLOAT_VECTORS "kernels/cpu/lib/float_vector_avx2.h"

#include "kernels/cpu/lib/scaled_linear_skeleton.h"

namespace weft::cpu {

const ScaledLinearKernels scaled_linear_kernels_avx2 = make_scaled_linear_kernels();

}  // namespace weft::cpu
