#pragma once

#include "ir/value.h"

namespace weft {

// What swizzle_scale was given, of `shape` [m, c].
//   x [1, align(m, 128), align(c, 4)] -> [m, c]
Value unswizzle_scale(const Value& x, Shape shape, CallSite site = CallSite::current());

}  // namespace weft
