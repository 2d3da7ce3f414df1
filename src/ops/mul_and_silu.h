#pragma once

#include "ir/value.h"

namespace weft {

// Returns the first half of each row times silu of the second half; silu is rounded to the dtype.
//   x [..., 2 d] -> [..., d]
Value mul_and_silu(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
