#pragma once

#include "ir/value.h"

namespace weft {

// Returns codes of x and the one scale for all of x: the largest magnitude / 448, but at least minimum_scale. vLLM's
// kernel has no minimum; its native form has 1 / (448 * 512). A code is that of x * (1 / scale). Without a minimum, an
// x of zeros only gives NaN.
//   x [..., d] -> dtype like x, f32 [1]
std::pair<Value, Value> dynamic_scaled_fp8_quant(const Value& x, Scalar minimum_scale = 0.0,
                                                 DType dtype = DType::f8e4m3, CallSite site = CallSite::current());

}  // namespace weft
