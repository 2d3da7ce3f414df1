#define WEFT_FLOAT_LANES 16
#define WEFT_FLOAT_VECTORS "kernels/cpu/lib/float_vector_baseline.h"

#include "tests/kernels/emulated_rows.h"

#include "kernels/cpu/lib/attention_skeleton.h"
#include "kernels/cpu/lib/quantized_rows_skeleton.h"
#include "kernels/cpu/lib/row_wise_skeleton.h"
#include "kernels/cpu/lib/scaled_linear_skeleton.h"

namespace weft::cpu {

const RowWiseKernels row_wise_kernels_emulated = make_row_wise_kernels();
const QuantizedRowKernels quantized_row_kernels_emulated = make_quantized_row_kernels();
const AttentionKernels attention_kernels_emulated = make_attention_kernels();
const ScaledLinearKernels scaled_linear_kernels_emulated = make_scaled_linear_kernels();

}  // namespace weft::cpu
