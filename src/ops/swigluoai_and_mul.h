#pragma once

#include "ir/value.h"

namespace weft {

// The gate of gpt-oss: (up + 1) * gate * sigmoid(alpha * gate). The gate is clamped to at most limit, and up to
// [-limit, limit]. Each step rounds to x's dtype.
//   x [..., 2 d], gates in columns 0, 2, 4, .. -> [..., d]
Value swigluoai_and_mul(const Value& x, Scalar alpha = 1.702, Scalar limit = 7.0, CallSite site = CallSite::current());

}  // namespace weft
