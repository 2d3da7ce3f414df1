#pragma once

#include <tuple>

#include "ir/value.h"

namespace weft {

// Applies scaled_fp4_quant to the first result of fused_add_rms_norm. Returns codes, scales and x + x_residual. The
// maybe_inplace form donates x_residual; the last result may use its memory.
//   x, x_residual [..., d], weight [d] or none, global_scale f32 [1] -> f4e2m1 [m, d], f8e4m3 scales of blocks of 16,
//   like x
std::tuple<Value, Value, Value> fused_add_rms_norm_scaled_fp4_quant(
    const Value& x, const Value& x_residual, const Value& weight, const Value& global_scale, Scalar epsilon,
    std::optional<std::int64_t> variance_size = std::nullopt, std::string_view intermediate = "f32",
    bool swizzled_scales = true, CallSite site = CallSite::current());
std::tuple<Value, Value, Value> fused_add_rms_norm_scaled_fp4_quant(
    MaybeInplace, const Value& x, const Value& x_residual, const Value& weight, const Value& global_scale,
    Scalar epsilon, std::optional<std::int64_t> variance_size = std::nullopt, std::string_view intermediate = "f32",
    bool swizzled_scales = true, CallSite site = CallSite::current());

}  // namespace weft
