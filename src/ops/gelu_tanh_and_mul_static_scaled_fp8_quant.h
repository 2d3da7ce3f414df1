#pragma once

#include "ir/value.h"

namespace weft {

// Applies static_scaled_fp8_quant to the result of gelu_tanh_and_mul. Returns codes. The value to quantize is first
// rounded to the dtype of x (intermediate=input_dtype) or stays in f32 (intermediate=f32).
//   x [..., 2 d], scale f32 [1] or groups of it -> dtype [..., d]
Value gelu_tanh_and_mul_static_scaled_fp8_quant(const Value& x, const Value& scale,
                                                std::string_view intermediate = "input_dtype",
                                                std::optional<Shape> group_shape = std::nullopt,
                                                DType dtype = DType::f8e4m3, CallSite site = CallSite::current());

}  // namespace weft
