#pragma once

#include <tuple>

#include "ir/value.h"

namespace weft {

// Applies per_token_group_quant_fp8 to the first result of fused_add_rms_norm. Returns codes, scales and x +
// x_residual. The maybe_inplace form donates x_residual; the last result may use its memory.
//   x, x_residual [..., d], weight [d] or none, scale_ub f32 [] or [1] or none -> dtype [..., d], f32 [..., d /
//   group_size], like x
std::tuple<Value, Value, Value> fused_add_rms_norm_per_token_group_quant_fp8(
    const Value& x, const Value& x_residual, const Value& weight, const Value& scale_ub, Scalar epsilon,
    std::int64_t group_size, std::optional<std::int64_t> variance_size = std::nullopt,
    std::string_view intermediate = "f32", Scalar eps = 1e-10, bool use_ue8m0 = false, bool column_major_scales = false,
    bool tma_aligned_scales = false, Scalar minimum_scale = 0.0, Scalar ue8m0_minimum = 1e-10,
    std::string_view scale_by = "division", std::string_view scale_ub_of = "magnitude", bool short_last_group = false,
    DType dtype = DType::f8e4m3, CallSite site = CallSite::current());
std::tuple<Value, Value, Value> fused_add_rms_norm_per_token_group_quant_fp8(
    MaybeInplace, const Value& x, const Value& x_residual, const Value& weight, const Value& scale_ub, Scalar epsilon,
    std::int64_t group_size, std::optional<std::int64_t> variance_size = std::nullopt,
    std::string_view intermediate = "f32", Scalar eps = 1e-10, bool use_ue8m0 = false, bool column_major_scales = false,
    bool tma_aligned_scales = false, Scalar minimum_scale = 0.0, Scalar ue8m0_minimum = 1e-10,
    std::string_view scale_by = "division", std::string_view scale_ub_of = "magnitude", bool short_last_group = false,
    DType dtype = DType::f8e4m3, CallSite site = CallSite::current());

}  // namespace weft
