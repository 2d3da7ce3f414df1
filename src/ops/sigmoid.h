#pragma once

#include "ir/value.h"

namespace weft {

// Returns 1 / (1 + exp(-x)), computed with the reference math (tensor/reference_math.h) and rounded to the dtype once.
Value sigmoid(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
