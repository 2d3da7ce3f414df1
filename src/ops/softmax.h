#pragma once

#include "ir/value.h"

namespace weft {

// Returns softmax along a dim: exp(x) / sum(exp(x)), relative to the largest element of the dim, computed in f32 (f64
// for f64) and rounded to the dtype once. All results along the dim are NaN if one element is NaN or +infinity, or if
// all are -infinity.
Value softmax(const Value& x, std::int64_t dim = -1, CallSite site = CallSite::current());

}  // namespace weft
