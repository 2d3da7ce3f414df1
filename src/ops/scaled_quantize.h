#pragma once

#include "ir/value.h"

namespace weft {

// Returns codes and scales of blocks of a matrix. group_shape = [rows, columns] is the block; -1 means the whole dim.
// The matrix must consist of whole blocks. With m = max(largest magnitude of the block, 1e-12) in f32, a code is that
// of x * (1 / m * 448), and the scale is 1 / (1 / m * 448).
//   x [M, N] -> dtype [M, N], f32 [M / rows, N / columns]
std::pair<Value, Value> scaled_quantize(const Value& x, Shape group_shape, DType dtype = DType::f8e4m3,
                                        CallSite site = CallSite::current());

}  // namespace weft
