#pragma once

#include "ir/value.h"

namespace weft {

// Converts values to another dtype, rounding to nearest even. A cast to an integer dtype rounds towards zero and
// saturates, and NaN becomes 0. A block type (q4_1, q8_0, ...) is dequantized: d*q + m in f32.
Value cast(const Value& x, DType dtype, CallSite site = CallSite::current());

}  // namespace weft
