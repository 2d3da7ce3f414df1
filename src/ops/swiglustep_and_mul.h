#pragma once

#include "ir/value.h"

namespace weft {

// silu of the first half of each row, rounded to the dtype and held below limit, times the second half held between
// -limit and limit.
//   x [..., 2 d] -> [..., d]
Value swiglustep_and_mul(const Value& x, Scalar limit = 7.0, CallSite site = CallSite::current());

}  // namespace weft
