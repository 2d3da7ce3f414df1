#pragma once

#include "ir/value.h"

namespace weft {

// x with `value` in place of every NaN.
Value replace_nan(const Value& x, Scalar value, CallSite site = CallSite::current());

}  // namespace weft
