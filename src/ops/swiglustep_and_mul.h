#pragma once

#include "ir/value.h"

namespace weft {

// Returns silu of the first half of each row times the second half. silu is rounded to the dtype and clamped to at most
// limit; the second half is clamped to [-limit, limit].
//   x [..., 2 d] -> [..., d]
Value swiglustep_and_mul(const Value& x, Scalar limit = 7.0, CallSite site = CallSite::current());

}  // namespace weft
