#pragma once

#include "ir/value.h"

namespace weft {

// Returns the square of x where x is positive and 0 elsewhere. NaN stays NaN.
Value relu2(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
