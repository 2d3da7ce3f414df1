#pragma once

#include "ir/value.h"

namespace weft {

// x rounded to the nearest integer, halves to even; by the house mathematics (tensor/house_math.h), rounded to the
// dtype once.
Value round(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
