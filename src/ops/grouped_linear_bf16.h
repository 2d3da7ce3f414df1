#pragma once

#include "ir/value.h"

namespace weft {

// grouped_linear with x of bf16 and the elements of the weights rounded to bf16, as linear_bf16 multiplies them: row i
// of x [rows, K] times the transpose of weight [E, N, K] number experts[i], plus its bias [E, N]: [rows, N] of `dtype`.
// Errors as of grouped_linear.
Value grouped_linear_bf16(const Value& x, const Value& weight, const Value& experts, const Value& bias = {},
                          DType dtype = DType::f32, CallSite site = CallSite::current());

}  // namespace weft
