#pragma once

#include "ir/value.h"

namespace weft {

// The largest element over a dim, kept as 1; NaN if any is NaN, and 0 without a sign if it is a zero.
Value amax(const Value& x, std::int64_t dim = -1, CallSite site = CallSite::current());

}  // namespace weft
