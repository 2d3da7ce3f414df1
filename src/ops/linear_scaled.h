#pragma once

#include "ir/value.h"

namespace weft {

// Returns x times the transpose of weight in f32, times the scale of the row and the scale of the column, plus bias,
// rounded to the dtype. x and weight are codes of the same dtype. Each side has one scale for the whole matrix ([] or
// [1]) or one for each of its rows ([M, 1]; [N] or [N, 1]).
//   x f8 or i8 [M, K], scale f32, weight like x [N, K], weight_scale f32, bias [N] -> dtype [M, N]
Value linear_scaled(const Value& x, const Value& scale, const Value& weight, const Value& weight_scale,
                    const Value& bias = {}, DType dtype = DType::f32, CallSite site = CallSite::current());

}  // namespace weft
