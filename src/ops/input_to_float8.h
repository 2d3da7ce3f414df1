#pragma once

#include "ir/value.h"

namespace weft {

// Codes of x by one scale for all of it, computed in the dtype of x: with m = max(largest magnitude, 1e-12), the code
// of x * (1 / m * 448), each step rounded to the dtype; and the scale that takes them back, 1 / (1 / m * 448) in f32.
//   x [..., d] -> dtype like x, f32 []
std::pair<Value, Value> input_to_float8(const Value& x, DType dtype = DType::f8e4m3,
                                        CallSite site = CallSite::current());

}  // namespace weft
