#pragma once

#include "ir/value.h"

namespace weft {

// Applies per_token_group_quant_fp8 to the result of rms_norm. Returns codes and scales.
//   x [..., d], weight [d] or none, scale_ub f32 [] or [1] or none -> dtype [..., d], f32 [..., d / group_size]
std::pair<Value, Value> rms_norm_per_token_group_quant_fp8(
    const Value& x, const Value& weight, const Value& scale_ub, Scalar epsilon, std::int64_t group_size,
    std::optional<std::int64_t> variance_size = std::nullopt, Scalar eps = 1e-10, bool use_ue8m0 = false,
    bool column_major_scales = false, bool tma_aligned_scales = false, Scalar minimum_scale = 0.0,
    Scalar ue8m0_minimum = 1e-10, std::string_view scale_by = "division", std::string_view scale_ub_of = "magnitude",
    bool short_last_group = false, DType dtype = DType::f8e4m3, CallSite site = CallSite::current());

}  // namespace weft
