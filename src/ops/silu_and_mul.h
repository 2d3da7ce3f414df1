#pragma once

#include "ir/value.h"

namespace weft {

// Returns silu of the first half of each row, rounded to the dtype, times the second half.
//   x [..., 2 d] -> [..., d]
Value silu_and_mul(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
