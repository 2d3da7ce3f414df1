#pragma once

#include "ir/value.h"

namespace weft {

// Returns x / (1 + exp(-x)), computed in f32 (f64 for f64) and rounded to the dtype once.
Value silu(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
