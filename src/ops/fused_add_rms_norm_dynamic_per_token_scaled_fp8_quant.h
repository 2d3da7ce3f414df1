#pragma once

#include <tuple>

#include "ir/value.h"

namespace weft {

// Applies dynamic_per_token_scaled_fp8_quant to the first result of fused_add_rms_norm. Returns codes, scales and x +
// x_residual. The maybe_inplace form donates x_residual; the last result may use its memory.
//   x, x_residual [..., d], weight [d] or none, scale_ub f32 [1] or none -> dtype [..., d], f32 [..., 1], like x
std::tuple<Value, Value, Value> fused_add_rms_norm_dynamic_per_token_scaled_fp8_quant(
    const Value& x, const Value& x_residual, const Value& weight, const Value& scale_ub, Scalar epsilon,
    std::optional<std::int64_t> variance_size = std::nullopt, std::string_view intermediate = "f32",
    std::optional<double> minimum_scale = std::nullopt, std::string_view scale_by = "division",
    std::string_view codes_by = "division", DType dtype = DType::f8e4m3, CallSite site = CallSite::current());
std::tuple<Value, Value, Value> fused_add_rms_norm_dynamic_per_token_scaled_fp8_quant(
    MaybeInplace, const Value& x, const Value& x_residual, const Value& weight, const Value& scale_ub, Scalar epsilon,
    std::optional<std::int64_t> variance_size = std::nullopt, std::string_view intermediate = "f32",
    std::optional<double> minimum_scale = std::nullopt, std::string_view scale_by = "division",
    std::string_view codes_by = "division", DType dtype = DType::f8e4m3, CallSite site = CallSite::current());

}  // namespace weft
