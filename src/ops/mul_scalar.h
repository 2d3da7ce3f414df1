#pragma once

#include "ir/value.h"

namespace weft {

// x * value, the value as f32 (f64 for f64 tensors).
Value mul_scalar(const Value& x, Scalar value, CallSite site = CallSite::current());

}  // namespace weft
