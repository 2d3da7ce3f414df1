#pragma once

#include "ir/value.h"

namespace weft {

// Returns the smaller of x and y per element, or NaN if either is NaN. It is computed in f32 (f64 for f64) and rounded
// to the dtype once. Dims that are the literal 1 are broadcast.
Value minimum(const Value& x, const Value& y, CallSite site = CallSite::current());

}  // namespace weft
