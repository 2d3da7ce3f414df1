#pragma once

#include "ir/value.h"

namespace weft {

// Returns x rounded towards zero, computed with the reference math (tensor/reference_math.h) and rounded to the dtype
// once.
Value trunc(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
