#pragma once

#include "ir/value.h"

namespace weft {

// Returns x / value. The value is converted to f32 (f64 for f64 tensors).
Value div_scalar(const Value& x, Scalar value, CallSite site = CallSite::current());

}  // namespace weft
