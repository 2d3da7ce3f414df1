#pragma once

#include "ir/value.h"

namespace weft {

// The square root of x; by the house mathematics (tensor/house_math.h), rounded to the dtype once.
Value sqrt(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
