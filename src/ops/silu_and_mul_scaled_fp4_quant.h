#pragma once

#include "ir/value.h"

namespace weft {

// Applies scaled_fp4_quant to the result of silu_and_mul. Returns codes and scales. The value to quantize is first
// rounded to the dtype of x (intermediate=input_dtype) or stays in f32 (intermediate=f32).
//   x [..., 2 d], global_scale f32 [1] -> f4e2m1 [m, d], f8e4m3 scales of blocks of 16
std::pair<Value, Value> silu_and_mul_scaled_fp4_quant(const Value& x, const Value& global_scale,
                                                      std::string_view intermediate = "input_dtype",
                                                      bool swizzled_scales = true, CallSite site = CallSite::current());

}  // namespace weft
