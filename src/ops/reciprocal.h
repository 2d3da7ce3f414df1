#pragma once

#include "ir/value.h"

namespace weft {

// 1 / x, in f32 (f64 for f64), rounded to the dtype once; that of either zero is of_zero where one is given.
Value reciprocal(const Value& x, std::optional<double> of_zero = std::nullopt, CallSite site = CallSite::current());

}  // namespace weft
