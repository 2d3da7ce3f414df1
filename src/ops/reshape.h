#pragma once

#include "ir/value.h"

namespace weft {

// Returns a view of the same elements with another shape. A strided tensor can be reshaped if no dim of the result
// would span a gap.
Value reshape(const Value& x, Shape shape, CallSite site = CallSite::current());

}  // namespace weft
