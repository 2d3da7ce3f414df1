#pragma once

#include "ir/value.h"

namespace weft {

// The activation of Apertus (xIELU):
//   x > 0: p * x^2 + beta * x                                     p = softplus(alpha_p)
//   else:  (exp(min(x, eps)) - 1 - x) * n + beta * x              n = beta + softplus(alpha_n)
// beta and eps are rounded to the dtype of the alphas; each step then to that of what it takes: x's, or where an alpha
// takes part that of both (f32 where they differ, f64 where one is), which the result has.
//   x [..., d], alpha_p and alpha_n [1] of one dtype -> [..., d]
Value xielu(const Value& x, const Value& alpha_p, const Value& alpha_n, Scalar beta = 0.5, Scalar eps = -1e-6,
            CallSite site = CallSite::current());

}  // namespace weft
