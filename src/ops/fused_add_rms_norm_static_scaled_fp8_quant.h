#pragma once

#include "ir/value.h"

namespace weft {

// Applies static_scaled_fp8_quant to the first result of fused_add_rms_norm. Returns codes and x + x_residual. The
// maybe_inplace form donates x_residual; the last result may use its memory.
//   x, x_residual [..., d], weight [d] or none, scale f32 [1] or groups of it -> dtype [..., d], like x
std::pair<Value, Value> fused_add_rms_norm_static_scaled_fp8_quant(
    const Value& x, const Value& x_residual, const Value& weight, const Value& scale, Scalar epsilon,
    std::optional<std::int64_t> variance_size = std::nullopt, std::string_view intermediate = "f32",
    std::optional<Shape> group_shape = std::nullopt, DType dtype = DType::f8e4m3, CallSite site = CallSite::current());
std::pair<Value, Value> fused_add_rms_norm_static_scaled_fp8_quant(
    MaybeInplace, const Value& x, const Value& x_residual, const Value& weight, const Value& scale, Scalar epsilon,
    std::optional<std::int64_t> variance_size = std::nullopt, std::string_view intermediate = "f32",
    std::optional<Shape> group_shape = std::nullopt, DType dtype = DType::f8e4m3, CallSite site = CallSite::current());

}  // namespace weft
