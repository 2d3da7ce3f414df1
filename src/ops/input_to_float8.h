#pragma once

#include "ir/value.h"

namespace weft {

// Returns codes of x by one scale for all of x, and the scale that dequantizes them. It is computed in the dtype of x:
// with m = max(largest magnitude, 1e-12), a code is that of x * (1 / m * 448), and each step is rounded to the dtype.
// The scale is 1 / (1 / m * 448) in f32.
//   x [..., d] -> dtype like x, f32 []
std::pair<Value, Value> input_to_float8(const Value& x, DType dtype = DType::f8e4m3,
                                        CallSite site = CallSite::current());

}  // namespace weft
