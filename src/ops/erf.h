#pragma once

#include "ir/value.h"

namespace weft {

// The error function of x; by the house mathematics (tensor/house_math.h), rounded to the dtype once.
Value erf(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
