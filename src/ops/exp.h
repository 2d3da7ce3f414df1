#pragma once

#include "ir/value.h"

namespace weft {

// Returns e to the power x, computed with the reference math (tensor/reference_math.h) and rounded to the dtype once.
Value exp(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
