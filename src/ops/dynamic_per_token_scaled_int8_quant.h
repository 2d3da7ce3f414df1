#pragma once

#include "ir/op.h"

namespace weft {

// Int8 codes and scales of rows: scale = the largest magnitude that is a number / 127, without a minimum; code =
// x * (1 / scale) rounded to the nearest, halves to even. NaN, and rows of zeros, give 0.
//   x [..., d] -> i8 like x, f32 [..., 1]
std::pair<Value, Value> dynamic_per_token_scaled_int8_quant(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
