#pragma once

#include "ir/value.h"

namespace weft {

// Applies dynamic_per_token_scaled_fp8_quant to the result of rms_norm. Returns codes and scales.
//   x [..., d], weight [d] or none, scale_ub f32 [1] or none -> dtype [..., d], f32 [..., 1]
std::pair<Value, Value> rms_norm_dynamic_per_token_scaled_fp8_quant(
    const Value& x, const Value& weight, const Value& scale_ub, Scalar epsilon,
    std::optional<std::int64_t> variance_size = std::nullopt, std::optional<double> minimum_scale = std::nullopt,
    std::string_view scale_by = "division", std::string_view codes_by = "division", DType dtype = DType::f8e4m3,
    CallSite site = CallSite::current());

}  // namespace weft
