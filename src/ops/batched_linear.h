#pragma once

#include "ir/value.h"

namespace weft {

// A linear layer for each head: x[:, h] times the transpose of weight[h], computed in f32 and rounded to the dtype of
// x. A block-quantized weight is dequantized.
//   x [rows, H, K], weight [H, N, K] -> [rows, H, N]
Value batched_linear(const Value& x, const Value& weight, CallSite site = CallSite::current());

}  // namespace weft
