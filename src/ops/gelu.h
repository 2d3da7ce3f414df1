#pragma once

#include "ir/value.h"

namespace weft {

// Returns 0.5 * x * (1 + erf(x / sqrt(2))), computed in f32 (f64 for f64) and rounded to the dtype once.
Value gelu(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
