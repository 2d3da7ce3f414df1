#pragma once

#include "ir/value.h"

namespace weft {

// x [..., K] of bf16 times the transpose of weight [N, K], whose elements are rounded to bf16, plus a bias [N]: [...,
// N] of `dtype`. It is the product of linear for weights of blocks whose processor multiplies bf16 sooner than f32.
// Sums are f32. Errors as of linear.
Value linear_bf16(const Value& x, const Value& weight, const Value& bias = {}, DType dtype = DType::f32,
                  CallSite site = CallSite::current());

}  // namespace weft
