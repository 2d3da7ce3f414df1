#pragma once

#include "ir/value.h"

namespace weft {

// The hyperbolic tangent of x; by the house mathematics (tensor/house_math.h), rounded to the dtype once.
Value tanh(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
