#pragma once

#include "ir/value.h"

namespace weft {

// Returns the error function of x, computed with the reference math (tensor/reference_math.h) and rounded to the dtype
// once.
Value erf(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
