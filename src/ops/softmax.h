#pragma once

#include "ir/value.h"

namespace weft {

// e to the power of each element over the sum of those along a dim, computed in f32 (f64 for f64) relative to the
// largest element there and rounded to the dtype once. NaN along the dim where one element is NaN or +infinity, or all
// are -infinity.
Value softmax(const Value& x, std::int64_t dim = -1, CallSite site = CallSite::current());

}  // namespace weft
