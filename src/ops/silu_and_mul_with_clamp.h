#pragma once

#include "ir/value.h"

namespace weft {

// gate * sigmoid(alpha * gate) * (up + beta), the gate held below swiglu_limit, up between -swiglu_limit and
// swiglu_limit; every step rounds to x's dtype.
//   x [..., 2 d], gate first -> [..., d]
Value silu_and_mul_with_clamp(const Value& x, Scalar swiglu_limit, Scalar alpha = 1.0, Scalar beta = 0.0,
                              CallSite site = CallSite::current());

}  // namespace weft
