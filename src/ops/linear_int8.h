#pragma once

#include "ir/value.h"

namespace weft {

// Returns x times the transpose of a block-quantized weight. x is int8 codes with one scale for each group of 32.
//   x i8[s0, K], scale f32[s0, K / 32], weight q4_0 | q4_1 | q8_0 [N, K] -> dtype[s0, N]
// For each group in order, with c = the exact integer dot product of both codes (q4_0: its codes - 8): f = fma(c, d *
// scale, f), and for q4_1 then f = fma(m, scale * sum of x's codes, f). Each kernel returns exactly these bits.
Value linear_int8(const Value& x, const Value& scale, const Value& weight, DType dtype = DType::f32,
                  CallSite site = CallSite::current());

}  // namespace weft
