#pragma once

#include "ir/value.h"

namespace weft {

// Applies per_token_group_quant_fp8 to the result of silu_and_mul. Returns codes and scales. The value to quantize is
// first rounded to the dtype of x (intermediate=input_dtype) or stays in f32 (intermediate=f32).
//   x [..., 2 d], scale_ub f32 [] or [1] or none -> dtype [..., d], f32 [..., d / group_size]
std::pair<Value, Value> silu_and_mul_per_token_group_quant_fp8(
    const Value& x, const Value& scale_ub, std::int64_t group_size, std::string_view intermediate = "input_dtype",
    Scalar eps = 1e-10, bool use_ue8m0 = false, bool column_major_scales = false, bool tma_aligned_scales = false,
    Scalar minimum_scale = 0.0, Scalar ue8m0_minimum = 1e-10, std::string_view scale_by = "division",
    std::string_view scale_ub_of = "magnitude", bool short_last_group = false, DType dtype = DType::f8e4m3,
    CallSite site = CallSite::current());

}  // namespace weft
