#pragma once

#include "ir/value.h"

namespace weft {

// Returns 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), with each step rounded to x's dtype. gelu_tanh is
// the same formula, rounded once.
Value gelu_new(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
