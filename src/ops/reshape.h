#pragma once

#include "ir/value.h"

namespace weft {

// The same elements under another shape, without moving them: a view. A strided tensor can be reshaped as long as no
// dim of the result would span a gap.
Value reshape(const Value& x, Shape shape, CallSite site = CallSite::current());

}  // namespace weft
