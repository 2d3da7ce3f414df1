#pragma once

#include "ir/value.h"

namespace weft {

// The same values in another dtype: rounded to nearest even; to integers towards zero, saturating, NaN as 0. A block
// type (q4_1, q8_0, ...) is dequantized: d*q + m in f32.
Value cast(const Value& x, DType dtype, CallSite site = CallSite::current());

}  // namespace weft
