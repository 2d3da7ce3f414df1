#pragma once

#include "ir/value.h"

namespace weft {

// Returns 1 / sqrt(x), each step rounded, computed with the reference math (tensor/reference_math.h) and rounded to the
// dtype once.
Value rsqrt(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
