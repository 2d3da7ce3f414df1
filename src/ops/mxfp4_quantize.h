#pragma once

#include "ir/value.h"

namespace weft {

// MXFP4: codes of blocks of 32 along each row, and the scales of the blocks: the power of two at or below the largest
// magnitude, rounded to one mantissa bit, / 4, of those that f8e8m0 holds; code of x / scale held to [-6, 6].
//   x [m, K] -> f4e2m1 [m, K], f8e8m0 [m, K / 32]
std::pair<Value, Value> mxfp4_quantize(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
