#define WEFT_FLOAT_VECTORS "kernels/cpu/lib/float_vector_avx512.h"

#include "kernels/cpu/lib/fp8_rows_skeleton.h"

namespace weft::cpu {

const Fp8RowsKernels fp8_rows_kernels_avx512 = make_fp8_rows_kernels();

}  // namespace weft::cpu
