#pragma once

#include "ir/value.h"

namespace weft {

// Returns the largest element over a dim; the dim is kept with size 1. The result is NaN if any element is NaN, and +0
// if the largest element is a zero of either sign.
Value amax(const Value& x, std::int64_t dim = -1, CallSite site = CallSite::current());

}  // namespace weft
