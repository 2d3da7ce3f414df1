#pragma once

#include "ir/value.h"

namespace weft {

// The tanh approximation of gelu: 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))). It is computed in f32 (the
// sum of the x and x^3 terms in f64) and rounded to the dtype once.
Value gelu_tanh(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
