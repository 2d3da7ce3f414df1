#define WEFT_FLOAT_VECTORS "kernels/cpu/lib/float_vector_baseline.h"

#include "kernels/cpu/lib/fp8_rows_skeleton.h"

namespace weft::cpu {

const Fp8RowsKernels fp8_rows_kernels_baseline = make_fp8_rows_kernels();

}  // namespace weft::cpu
