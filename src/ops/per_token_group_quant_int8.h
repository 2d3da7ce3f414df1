#pragma once

#include "ir/op.h"

namespace weft {

// Returns codes and scales of groups along each row. scale = max(max(largest magnitude, eps) / 127, minimum_scale).
// code = x / scale, rounded to the nearest (rounding=nearest, halves to even) or towards zero (rounding=toward_zero, as
// in vLLM's Triton kernel). A NaN gets code 0. The layout of the scales is that of group_quant.h.
// The defaults are those of vLLM's CUDA kernel. Its silu_and_mul_per_block_quant and rms_norm_per_block_quant have
// eps=0, minimum_scale=2^-23. Scales of int8 have no upper bound in any of them.
//   x [..., d] -> i8 like x, f32 [..., d / group_size]
std::pair<Value, Value> per_token_group_quant_int8(const Value& x, std::int64_t group_size, Scalar eps = 1e-10,
                                                   std::string_view rounding = "nearest",
                                                   bool column_major_scales = false, bool tma_aligned_scales = false,
                                                   Scalar minimum_scale = 0.0, CallSite site = CallSite::current());

// Ops that end with this quantization share these: its attributes after group_size, and the check of the attributes for
// an op that quantizes rows of this shape (throws UserError).
inline constexpr const char* kGroupInt8Attributes =
    "float eps=1e-10, str rounding=nearest, bool column_major_scales=False, bool tma_aligned_scales=False, float "
    "minimum_scale=0.0";
void check_group_int8(const OpRequest& request, const char* op, const Shape& shape);

}  // namespace weft
