#pragma once

#include <tuple>

#include "ir/value.h"

namespace weft {

// dynamic_per_token_scaled_int8_quant of fused_add_rms_norm's first result, and its second: codes, scales, x +
// x_residual. The maybe_inplace form gives x_residual away; the last result may live in it.
//   x, x_residual [..., d], weight [d] or none -> i8 [..., d], f32 [..., 1], like x
std::tuple<Value, Value, Value> fused_add_rms_norm_dynamic_per_token_scaled_int8_quant(
    const Value& x, const Value& x_residual, const Value& weight, Scalar epsilon,
    std::optional<std::int64_t> variance_size = std::nullopt, std::string_view intermediate = "f32",
    CallSite site = CallSite::current());
std::tuple<Value, Value, Value> fused_add_rms_norm_dynamic_per_token_scaled_int8_quant(
    MaybeInplace, const Value& x, const Value& x_residual, const Value& weight, Scalar epsilon,
    std::optional<std::int64_t> variance_size = std::nullopt, std::string_view intermediate = "f32",
    CallSite site = CallSite::current());

}  // namespace weft
