#pragma once

#include "ir/op.h"

namespace weft {

// Returns codes and scales of groups along each row. scale = max(largest magnitude, eps) / 448, or with
// scale_by=reciprocal times 1 / 448. With use_ue8m0 the scale is raised to ue8m0_minimum and rounded up to a power of
// two. The scale is at least minimum_scale. A code is that of x / scale. With short_last_group the last group of a row
// may have fewer elements; otherwise d must be a multiple of group_size.
// The defaults are those of vLLM's CUDA kernel. Its Triton kernel has scale_by=reciprocal, ue8m0_minimum=0; its native
// form has eps=0, ue8m0_minimum=0, minimum_scale=1/(448*512), short_last_group.
//
// scale_ub is an upper bound. vLLM's ops differ in the quantity that it bounds, which scale_ub_of selects:
//
//   magnitude  of max(largest magnitude, eps)         rms_norm_per_block_quant, with and without a residual
//   scale      of the scale before it is rounded up   silu_and_mul_per_block_quant
//              and raised to minimum_scale
//
// The layout of the scales is that of group_quant.h.
//   x [..., d], scale_ub f32 [] or [1] or none -> dtype like x, f32 [..., d / group_size]
std::pair<Value, Value> per_token_group_quant_fp8(
    const Value& x, const Value& scale_ub, std::int64_t group_size, Scalar eps = 1e-10, bool use_ue8m0 = false,
    bool column_major_scales = false, bool tma_aligned_scales = false, Scalar minimum_scale = 0.0,
    Scalar ue8m0_minimum = 1e-10, std::string_view scale_by = "division", std::string_view scale_ub_of = "magnitude",
    bool short_last_group = false, DType dtype = DType::f8e4m3, CallSite site = CallSite::current());

// Ops that end with this quantization share these: its attributes after group_size, and the check of the attributes and
// of scale_ub (an operand index) for an op that quantizes rows of this shape (throws UserError).
inline constexpr const char* kGroupFp8Attributes =
    "float eps=1e-10, bool use_ue8m0=False, bool column_major_scales=False, bool tma_aligned_scales=False, float "
    "minimum_scale=0.0, float ue8m0_minimum=1e-10, str scale_by=division, str scale_ub_of=magnitude, bool "
    "short_last_group=False, ScalarType dtype=f8e4m3";
void check_group_fp8(const OpRequest& request, const char* op, const Shape& shape, std::size_t scale_ub);

}  // namespace weft
