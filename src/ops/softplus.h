#pragma once

#include "ir/value.h"

namespace weft {

// log(1 + exp(x)), in f64, rounded to the dtype once; x itself where exp(x) has no room.
Value softplus(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
