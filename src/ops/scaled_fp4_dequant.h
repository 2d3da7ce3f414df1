#pragma once

#include "ir/value.h"

namespace weft {

// Dequantizes NVFP4: code * (scale * global_scale) in f32, or with divide_by_global_scale code * (scale /
// global_scale), rounded to the dtype. Activations have the global_scale that was given to scaled_fp4_quant, which must
// divide; checkpoints of weights store its inverse, which multiplies.
//   x f4e2m1 [m, K], scale f8e4m3 as scaled_fp4_quant returns it, global_scale f32 [1] -> dtype [m, K]
Value scaled_fp4_dequant(const Value& x, const Value& scale, const Value& global_scale, bool swizzled_scales = true,
                         bool divide_by_global_scale = false, DType dtype = DType::bf16,
                         CallSite site = CallSite::current());

}  // namespace weft
