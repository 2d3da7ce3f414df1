#pragma once

#include "ir/value.h"

namespace weft {

// x / (1 + exp(-x)), in f32, rounded to the dtype once.
Value silu(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
