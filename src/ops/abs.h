#pragma once

#include "ir/value.h"

namespace weft {

// Returns the magnitude of x, computed with the reference math (tensor/reference_math.h) and rounded to the dtype once.
Value abs(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
