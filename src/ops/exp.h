#pragma once

#include "ir/value.h"

namespace weft {

// e to the power x; by the house mathematics (tensor/house_math.h), rounded to the dtype once.
Value exp(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
