#pragma once

#include "ir/value.h"

namespace weft {

// A linear layer of experts: row i of the result is row i of x times the transpose of weight[experts[i]], plus
// bias[experts[i]], computed in f32 and rounded to the dtype of x. Kernels read only the weights of experts that have
// rows, and each of them once if equal experts are adjacent (moe_sort). A block-quantized weight is dequantized.
//   x [rows, K], weight [E, N, K], experts i32 or i64 [rows], bias [E, N] -> [rows, N]
Value grouped_linear(const Value& x, const Value& weight, const Value& experts, const Value& bias = {},
                     CallSite site = CallSite::current());

}  // namespace weft
