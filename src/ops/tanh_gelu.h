#pragma once

#include "ops/add_scalar.h"
#include "ops/cast.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/tanh.h"

namespace weft {

// Returns 0.5 * x * (1 + tanh(inner)), with each step rounded to x's dtype.
//
// tanh is computed in f64, because its sum with 1 cancels where tanh is near -1: in f32 the reference math returns -1
// from -8.664 on, but torch, which rounds to the nearest float, only from -9.01 on.
inline Value tanh_gelu(const Value& x, const Value& inner) {
  const Value nearest = cast(tanh(cast(inner, DType::f64)), x.dtype());
  return mul(mul_scalar(x, 0.5), add_scalar(nearest, 1.0));
}

}  // namespace weft
