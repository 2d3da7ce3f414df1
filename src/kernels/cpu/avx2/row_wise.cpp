#define WEFT_FLOAT_VECTORS "kernels/cpu/lib/float_vector_avx2.h"

#include "kernels/cpu/lib/row_wise_skeleton.h"

namespace weft::cpu {

const RowWiseKernels row_wise_kernels_avx2 = make_row_wise_kernels();

}  // namespace weft::cpu
