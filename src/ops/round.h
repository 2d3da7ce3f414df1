#pragma once

#include "ir/value.h"

namespace weft {

// Returns x rounded to the nearest integer, halves to even, computed with the reference math (tensor/reference_math.h)
// and rounded to the dtype once.
Value round(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
