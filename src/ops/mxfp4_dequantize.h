#pragma once

#include "ir/value.h"

namespace weft {

// Dequantizes MXFP4: code * scale of its block of 32, in f32, rounded to the dtype.
//   x f4e2m1 [m, K], scale f8e8m0 [m, K / 32] -> dtype [m, K]
Value mxfp4_dequantize(const Value& x, const Value& scale, DType dtype = DType::bf16,
                       CallSite site = CallSite::current());

}  // namespace weft
