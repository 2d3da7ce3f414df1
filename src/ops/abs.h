#pragma once

#include "ir/value.h"

namespace weft {

// The magnitude of x; by the house mathematics (tensor/house_math.h), rounded to the dtype once.
Value abs(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
