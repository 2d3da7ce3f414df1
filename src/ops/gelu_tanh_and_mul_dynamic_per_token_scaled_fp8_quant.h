#pragma once

#include "ir/value.h"

namespace weft {

// Applies dynamic_per_token_scaled_fp8_quant to the result of gelu_tanh_and_mul. Returns codes and scales. The value to
// quantize is first rounded to the dtype of x (intermediate=input_dtype) or stays in f32 (intermediate=f32).
//   x [..., 2 d], scale_ub f32 [1] or none -> dtype [..., d], f32 [..., 1]
std::pair<Value, Value> gelu_tanh_and_mul_dynamic_per_token_scaled_fp8_quant(
    const Value& x, const Value& scale_ub = {}, std::string_view intermediate = "input_dtype",
    std::optional<double> minimum_scale = std::nullopt, std::string_view scale_by = "division",
    std::string_view codes_by = "division", DType dtype = DType::f8e4m3, CallSite site = CallSite::current());

}  // namespace weft
