#pragma once

#include "ir/value.h"

namespace weft {

// The square of x where it is positive, 0 where it is not. NaN stays NaN.
Value relu2(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
