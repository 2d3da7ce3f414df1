#pragma once

#include "ir/value.h"

namespace weft {

// Returns gate * sigmoid(alpha * gate) * (up + beta). The gate is clamped to at most swiglu_limit, and up to
// [-swiglu_limit, swiglu_limit]. Each step rounds to x's dtype.
//   x [..., 2 d], gate first -> [..., d]
Value silu_and_mul_with_clamp(const Value& x, Scalar swiglu_limit, Scalar alpha = 1.0, Scalar beta = 0.0,
                              CallSite site = CallSite::current());

}  // namespace weft
