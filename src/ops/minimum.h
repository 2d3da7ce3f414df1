#pragma once

#include "ir/value.h"

namespace weft {

// The smaller of x and y; NaN if either is NaN, element by element in f32 (f64 for f64), rounded to the dtype once.
// Dims that are the literal 1 spread.
Value minimum(const Value& x, const Value& y, CallSite site = CallSite::current());

}  // namespace weft
