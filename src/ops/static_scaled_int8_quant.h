#pragma once

#include "ir/op.h"

namespace weft {

// Int8 codes of x by one scale for all of it: x * (1 / scale) rounded to the nearest, halves to even, held to
// [-128, 127]; NaN gives 0. With a zero point that is added before the rounding, product and sum rounded as one.
//   x [..., d], scale f32 [1], zero_point i32 [1] or none -> i8 like x
Value static_scaled_int8_quant(const Value& x, const Value& scale, const Value& zero_point = {},
                               CallSite site = CallSite::current());

// The codes of x (f32) by scales and zero points (f32, or none) that spread over it.
Value int8_codes(const Value& x, const Value& scale, const Value& zero_point);

}  // namespace weft
