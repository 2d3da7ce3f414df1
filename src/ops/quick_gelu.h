#pragma once

#include "ir/value.h"

namespace weft {

// Returns x * sigmoid(1.702 * x), with each step rounded to x's dtype.
Value quick_gelu(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
