#pragma once

#include "ir/value.h"

namespace weft {

// Returns 1 / x, computed in f32 (f64 for f64) and rounded to the dtype once. If of_zero is given, it is the result for
// both zeros.
Value reciprocal(const Value& x, std::optional<double> of_zero = std::nullopt, CallSite site = CallSite::current());

}  // namespace weft
