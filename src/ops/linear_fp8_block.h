#pragma once

#include "ir/value.h"

namespace weft {

// Returns x times the transpose of weight, plus bias, computed in f32 and rounded to the dtype. x and weight are fp8
// codes, with a scale for each group of a row of x and for each block of the weight. block = [rows, columns] is the
// block of the weight; a group of x has `columns` elements. The last groups and blocks may be shorter.
//   x f8 [M, K], scale f32 [M, ceil(K / columns)], weight like x [N, K],
//   weight_scale f32 [ceil(N / rows), ceil(K / columns)], bias [N] -> dtype [M, N]
Value linear_fp8_block(const Value& x, const Value& scale, const Value& weight, const Value& weight_scale,
                       const Value& bias, Shape block, DType dtype = DType::f32, CallSite site = CallSite::current());

}  // namespace weft
