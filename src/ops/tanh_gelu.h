#pragma once

#include "ops/add_scalar.h"
#include "ops/cast.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/tanh.h"

namespace weft {

// 0.5 * x * (1 + tanh(inner)), every step rounded to x's dtype.
//
// tanh in f64, as the sum with 1 cancels where it is near -1: from -8.664 on the house's tanh is -1 in f32, torch's,
// the nearest float, only from -9.01 on.
inline Value tanh_gelu(const Value& x, const Value& inner) {
  const Value nearest = cast(tanh(cast(inner, DType::f64)), x.dtype());
  return mul(mul_scalar(x, 0.5), add_scalar(nearest, 1.0));
}

}  // namespace weft
