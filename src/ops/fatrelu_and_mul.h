#pragma once

#include "ir/value.h"

namespace weft {

// Returns gate * value. The gate is the first half of each row where it is above threshold and 0 elsewhere; the value
// is the second half. NaN stays NaN.
//   x [..., 2 d] -> [..., d]
Value fatrelu_and_mul(const Value& x, Scalar threshold = 0.0, CallSite site = CallSite::current());

}  // namespace weft
