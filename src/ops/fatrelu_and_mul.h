#pragma once

#include "ir/value.h"

namespace weft {

// The first half of each row where it is above threshold, 0 where it is not, times the second half. NaN stays NaN.
//   x [..., 2 d] -> [..., d]
Value fatrelu_and_mul(const Value& x, Scalar threshold = 0.0, CallSite site = CallSite::current());

}  // namespace weft
