#pragma once

#include "ir/value.h"

namespace weft {

// The activation of Apertus (xIELU):
//   x > 0: p * x^2 + beta * x                                     p = softplus(alpha_p)
//   else:  (exp(min(x, eps)) - 1 - x) * n + beta * x              n = beta + softplus(alpha_n)
// beta and eps are rounded to the dtype of the alphas. Each step is then rounded to the dtype of its operands: x's
// dtype, or, if an alpha takes part, the common dtype of x and the alphas (f32 where they differ, f64 where one is
// f64). The result has that common dtype.
//   x [..., d], alpha_p and alpha_n [1] of one dtype -> [..., d]
Value xielu(const Value& x, const Value& alpha_p, const Value& alpha_n, Scalar beta = 0.5, Scalar eps = -1e-6,
            CallSite site = CallSite::current());

}  // namespace weft
