#pragma once

#include "ir/value.h"

namespace weft {

// -x; by the house mathematics (tensor/house_math.h), rounded to the dtype once.
Value neg(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
