#pragma once

#include "ir/value.h"

namespace weft {

// Restores the operand of swizzle_scale, of `shape` [m, c].
//   x [1, align(m, 128), align(c, 4)] -> [m, c]
Value unswizzle_scale(const Value& x, Shape shape, CallSite site = CallSite::current());

}  // namespace weft
