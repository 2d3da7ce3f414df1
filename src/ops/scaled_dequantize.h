#pragma once

#include "ir/value.h"

namespace weft {

// Returns the codes of a matrix times the scales of their blocks, in f32, rounded to the dtype. group_shape = [rows,
// columns] is the block; the last blocks along each dim may be smaller.
//   x f8 or i8 [M, N], scale f32 [ceil(M / rows), ceil(N / columns)] -> dtype [M, N]
Value scaled_dequantize(const Value& x, const Value& scale, Shape group_shape, DType dtype = DType::f32,
                        CallSite site = CallSite::current());

}  // namespace weft
