#pragma once

#include "ir/op.h"

namespace weft {

// Returns int8 codes of x by one scale for all of x: x * (1 / scale) rounded to the nearest, halves to even, and
// clamped to [-128, 127]. A NaN gets code 0. A zero point is added before the rounding; product and sum are rounded
// once.
//   x [..., d], scale f32 [1], zero_point i32 [1] or none -> i8 like x
Value static_scaled_int8_quant(const Value& x, const Value& scale, const Value& zero_point = {},
                               CallSite site = CallSite::current());

// Returns the codes of x (f32) by scales and zero points (f32, or none) that broadcast over it.
Value int8_codes(const Value& x, const Value& scale, const Value& zero_point);

}  // namespace weft
