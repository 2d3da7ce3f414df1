#pragma once

#include "ir/value.h"

namespace weft {

// Returns log(1 + exp(x)), computed in f64 and rounded to the dtype once. It does not overflow: for large x the result
// is x.
Value softplus(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
