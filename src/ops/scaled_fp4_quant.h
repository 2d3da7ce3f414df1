#pragma once

#include "ir/op.h"

namespace weft {

// Returns NVFP4 codes of blocks of 16 along each row, and the scales of the blocks. scale = global_scale * (the block's
// largest magnitude * 1/6) as f8e4m3. A code is that of x * (1 / (scale * (1 / global_scale))), clamped to [-6, 6];
// here 1 / 0 is 0, and -0 becomes 0. global_scale is 448 * 6 / (the largest expected magnitude). The scales are in the
// order of swizzle_scale, or in plain rows.
//   x [m, K], global_scale f32 [1] -> f4e2m1 [m, K], f8e4m3 [1, align(m, 128), align(K / 16, 4)] or [m, K / 16]
std::pair<Value, Value> scaled_fp4_quant(const Value& x, const Value& global_scale, bool swizzled_scales = true,
                                         CallSite site = CallSite::current());

// Throws UserError unless rows of this shape are whole blocks and operand `global_scale` is one f32.
void check_fp4(const OpRequest& request, const char* op, const Shape& shape, std::size_t global_scale);

}  // namespace weft
