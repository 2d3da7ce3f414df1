#pragma once

#include "ir/value.h"

namespace weft {

// x * sigmoid(1.702 * x), every step rounded to x's dtype.
Value quick_gelu(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
