#pragma once

#include "ir/value.h"

namespace weft {

// The mean over the last dim, kept as 1.
Value mean(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
