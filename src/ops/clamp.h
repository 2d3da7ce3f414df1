#pragma once

#include "ir/value.h"

namespace weft {

// Clamps x to [min, max]; either bound may be absent. NaN stays NaN.
Value clamp(const Value& x, std::optional<double> min, std::optional<double> max, CallSite site = CallSite::current());

}  // namespace weft
