#pragma once

#include "ir/value.h"

namespace weft {

// Returns a contiguous copy with its own storage.
Value clone(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
