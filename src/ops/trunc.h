#pragma once

#include "ir/value.h"

namespace weft {

// x rounded towards zero; by the house mathematics (tensor/house_math.h), rounded to the dtype once.
Value trunc(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
