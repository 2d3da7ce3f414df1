#pragma once

#include "ir/value.h"

namespace weft {

// 0.5 * x * (1 + erf(x / sqrt(2))), in f32, rounded to the dtype once.
Value gelu(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
