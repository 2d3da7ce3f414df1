#pragma once

#include "ir/value.h"

namespace weft {

// Returns MXFP4 codes of blocks of 32 along each row, and the scales of the blocks. To get the scale, the largest
// magnitude of the block is rounded to one mantissa bit; the scale is the power of two at or below it, / 4, limited to
// the range of f8e8m0. A code is that of x / scale, clamped to [-6, 6].
//   x [m, K] -> f4e2m1 [m, K], f8e8m0 [m, K / 32]
std::pair<Value, Value> mxfp4_quantize(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
