#pragma once

#include "ir/value.h"

namespace weft {

// 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), every step rounded to x's dtype; gelu_tanh is the same
// rounded once.
Value gelu_new(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
