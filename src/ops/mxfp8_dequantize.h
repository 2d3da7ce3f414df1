#pragma once

#include "ir/value.h"

namespace weft {

// Dequantizes MXFP8: code * scale of its block of 32, in f32, rounded to the dtype.
//   x f8e4m3 [m, K], scale f8e8m0 as mxfp8_quantize returns it -> dtype [m, K]
Value mxfp8_dequantize(const Value& x, const Value& scale, bool swizzled_scales = false, DType dtype = DType::bf16,
                       CallSite site = CallSite::current());

}  // namespace weft
