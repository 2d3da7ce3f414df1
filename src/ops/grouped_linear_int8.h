#pragma once

#include "ir/value.h"

namespace weft {

// The linear layer of experts over codes: row i of the result is the product of row i of x and the transpose of
// weight[experts[i]] with the bits of linear_int8 in f32, plus bias[experts[i]], and is rounded to dtype. Each kernel
// returns exactly these bits. As with grouped_linear, only weights of experts that have rows are read.
//   x i8[rows, K], scale f32[rows, K / 32], weight of any block type with integer codes [E, N, K],
//   experts i32 or i64 [rows], bias [E, N] -> dtype[rows, N]
Value grouped_linear_int8(const Value& x, const Value& scale, const Value& weight, const Value& experts,
                          const Value& bias = {}, DType dtype = DType::f32, CallSite site = CallSite::current());

}  // namespace weft
