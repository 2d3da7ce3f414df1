#pragma once

#include "ir/value.h"

namespace weft {

// Returns the natural logarithm of 1 + x, computed in f64 and rounded to the dtype once. It is NaN below -1.
Value log1p(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
