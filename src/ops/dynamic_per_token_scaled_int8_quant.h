#pragma once

#include "ir/op.h"

namespace weft {

// Returns int8 codes and scales of rows. scale = the largest magnitude, NaN ignored, / 127, without a minimum. code = x
// * (1 / scale) rounded to the nearest, halves to even. A NaN gets code 0, and so does each element of a row of zeros.
//   x [..., d] -> i8 like x, f32 [..., 1]
std::pair<Value, Value> dynamic_per_token_scaled_int8_quant(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
