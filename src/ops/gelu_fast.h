#pragma once

#include "ir/value.h"

namespace weft {

// Returns 0.5 * x * (1 + tanh(0.7978845608 * x * (1 + 0.044715 * x * x))), with each step rounded to x's dtype:
// gelu_new with another order of operations.
Value gelu_fast(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
