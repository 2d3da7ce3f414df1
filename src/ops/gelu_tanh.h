#pragma once

#include "ir/value.h"

namespace weft {

// The tanh approximation of gelu, 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), in f32 (the sum in x and
// x^3 in f64), rounded to the dtype once.
Value gelu_tanh(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
