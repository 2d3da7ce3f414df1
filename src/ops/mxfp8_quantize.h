#pragma once

#include "ir/value.h"

namespace weft {

// Returns MXFP8 codes of blocks of 32 along each row, and the scales of the blocks. A scale is the largest magnitude
// (at least the smallest normal f32) / 448, rounded up to a power of two of f8e8m0. A code is that of x / scale.
//   x [m, K] -> f8e4m3 [m, K], f8e8m0 [m, K / 32], or the result of swizzle_scale for it
std::pair<Value, Value> mxfp8_quantize(const Value& x, bool swizzled_scales = false,
                                       CallSite site = CallSite::current());

}  // namespace weft
