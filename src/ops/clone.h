#pragma once

#include "ir/value.h"

namespace weft {

// A copy with storage of its own, contiguous.
Value clone(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
