#pragma once

#include "ir/value.h"

namespace weft {

// The largest element over the last dim, kept as 1; NaN if any is NaN.
Value amax(Value x);

}  // namespace weft
