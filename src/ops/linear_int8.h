#pragma once

#include "ir/value.h"

namespace weft {

// Returns x times the transpose of a block-quantized weight. x is int8 codes with one scale for each group of 32.
//   x i8[s0, K], scale f32[s0, K / 32], weight of any block type [N, K] -> dtype[s0, N]
// For each group of the weight in order (of 16 or 32 elements), with c = the exact integer dot product of the values of
// both codes, d = the group's scale, m = its minimum, scale = that of the 32 codes of x: f = fma(c, d * scale, f), and
// with minimums then f = fma(m, scale * sum of the group's codes of x, f). Each kernel returns exactly these bits.
Value linear_int8(const Value& x, const Value& scale, const Value& weight, DType dtype = DType::f32,
                  CallSite site = CallSite::current());

}  // namespace weft
