#pragma once

#include "ir/value.h"

namespace weft {

// Applies dynamic_per_token_scaled_int8_quant to the result of gelu_tanh_and_mul. Returns codes and scales. The value
// to quantize is first rounded to the dtype of x (intermediate=input_dtype) or stays in f32 (intermediate=f32).
//   x [..., 2 d] -> i8 [..., d], f32 [..., 1]
std::pair<Value, Value> gelu_tanh_and_mul_dynamic_per_token_scaled_int8_quant(
    const Value& x, std::string_view intermediate = "input_dtype", CallSite site = CallSite::current());

}  // namespace weft
