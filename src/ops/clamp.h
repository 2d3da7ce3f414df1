#pragma once

#include "ir/value.h"

namespace weft {

// x held between min and max; either may be absent. NaN stays NaN.
Value clamp(const Value& x, std::optional<double> min, std::optional<double> max, CallSite site = CallSite::current());

}  // namespace weft
