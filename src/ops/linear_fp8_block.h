#pragma once

#include "ir/value.h"

namespace weft {

// x times the transpose of weight, fp8 codes with a scale for each group of x's rows and each block of the weight, in
// f32, plus bias, rounded to the dtype. block = [rows, columns] of the weight; groups of x have as many columns. The
// last ones may be short.
//   x f8 [M, K], scale f32 [M, ceil(K / columns)], weight like x [N, K],
//   weight_scale f32 [ceil(N / rows), ceil(K / columns)], bias [N] -> dtype [M, N]
Value linear_fp8_block(const Value& x, const Value& scale, const Value& weight, const Value& weight_scale,
                       const Value& bias, Shape block, DType dtype = DType::f32, CallSite site = CallSite::current());

}  // namespace weft
