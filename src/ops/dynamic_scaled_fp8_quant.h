#pragma once

#include "ir/value.h"

namespace weft {

// Codes of x by one scale for all of it, and that scale: the largest magnitude / 448, at least minimum_scale (vLLM's
// kernel has no least scale, its native form 1 / (448 * 512)); code of x * (1 / scale). Without a least scale zeros
// alone give NaN.
//   x [..., d] -> dtype like x, f32 [1]
std::pair<Value, Value> dynamic_scaled_fp8_quant(const Value& x, Scalar minimum_scale = 0.0,
                                                 DType dtype = DType::f8e4m3, CallSite site = CallSite::current());

}  // namespace weft
