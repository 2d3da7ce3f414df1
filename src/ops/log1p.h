#pragma once

#include "ir/value.h"

namespace weft {

// The natural logarithm of 1 + x, computed in f64, rounded to the dtype once; NaN below -1.
Value log1p(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
