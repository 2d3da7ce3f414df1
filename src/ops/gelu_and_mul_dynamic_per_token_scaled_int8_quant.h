#pragma once

#include "ir/value.h"

namespace weft {

// dynamic_per_token_scaled_int8_quant of gelu_and_mul: codes and scales. What is quantized is rounded to the dtype of x
// (intermediate=input_dtype) or kept in f32 (intermediate=f32).
//   x [..., 2 d] -> i8 [..., d], f32 [..., 1]
std::pair<Value, Value> gelu_and_mul_dynamic_per_token_scaled_int8_quant(const Value& x,
                                                                         std::string_view intermediate = "input_dtype",
                                                                         CallSite site = CallSite::current());

}  // namespace weft
