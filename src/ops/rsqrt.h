#pragma once

#include "ir/value.h"

namespace weft {

// 1 / sqrt(x), each step rounded; by the house mathematics (tensor/house_math.h), rounded to the dtype once.
Value rsqrt(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
