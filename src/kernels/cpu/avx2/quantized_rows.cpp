#define WEFT_FLOAT_VECTORS "kernels/cpu/lib/float_vector_avx2.h"

#include "kernels/cpu/lib/quantized_rows_skeleton.h"

namespace weft::cpu {

const QuantizedRowKernels quantized_row_kernels_avx2 = make_quantized_row_kernels();

}  // namespace weft::cpu
