#pragma once

#include "ir/value.h"

namespace weft {

// Returns -x, computed with the reference math (tensor/reference_math.h) and rounded to the dtype once.
Value neg(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
