#pragma once

#include "ir/value.h"

namespace weft {

// Replaces each NaN of x with `value`.
Value replace_nan(const Value& x, Scalar value, CallSite site = CallSite::current());

}  // namespace weft
