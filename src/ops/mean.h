#pragma once

#include "ir/value.h"

namespace weft {

// Returns the mean over the last dim; the dim is kept with size 1.
Value mean(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
