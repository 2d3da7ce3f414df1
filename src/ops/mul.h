#pragma once

#include "ir/value.h"

namespace weft {

// Returns x * y, computed per element in f32 (f64 for f64) and rounded to the dtype once. Dims that are the literal 1
// are broadcast.
Value mul(const Value& x, const Value& y, CallSite site = CallSite::current());

}  // namespace weft
