#pragma once

#include "ir/value.h"

namespace weft {

// Returns x times the transpose of weight, plus bias, computed in f32 and rounded to the dtype of x. A block-quantized
// weight is dequantized.
//   x [..., K], weight [N, K], bias [N] -> [..., N]
Value linear(const Value& x, const Value& weight, const Value& bias = {}, CallSite site = CallSite::current());

}  // namespace weft
