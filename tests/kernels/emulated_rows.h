#pragma once

// The row-wise and attention skeletons with 16 lanes, the shapes of AVX-512, on any processor, and attention with
// emulated tiles.

#include "kernels/cpu/lib/attention_kernels.h"
#include "kernels/cpu/lib/quantized_rows_kernels.h"
#include "kernels/cpu/lib/row_wise_kernels.h"
#include "kernels/cpu/lib/scaled_linear_kernels.h"

namespace weft::cpu {

extern const RowWiseKernels row_wise_kernels_emulated;
extern const QuantizedRowKernels quantized_row_kernels_emulated;
extern const AttentionKernels attention_kernels_emulated;
void attend_in_tiles_emulated(const AttentionTask& task);
extern const ScaledLinearKernels scaled_linear_kernels_emulated;

}  // namespace weft::cpu
