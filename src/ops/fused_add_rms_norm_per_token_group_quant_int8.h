#pragma once

#include <tuple>

#include "ir/value.h"

namespace weft {

// Applies per_token_group_quant_int8 to the first result of fused_add_rms_norm. Returns codes, scales and x +
// x_residual. The maybe_inplace form donates x_residual; the last result may use its memory.
//   x, x_residual [..., d], weight [d] or none -> i8 like x, f32 [..., d / group_size], like x
std::tuple<Value, Value, Value> fused_add_rms_norm_per_token_group_quant_int8(
    const Value& x, const Value& x_residual, const Value& weight, Scalar epsilon, std::int64_t group_size,
    std::optional<std::int64_t> variance_size = std::nullopt, std::string_view intermediate = "f32", Scalar eps = 1e-10,
    std::string_view rounding = "nearest", CallSite site = CallSite::current());
std::tuple<Value, Value, Value> fused_add_rms_norm_per_token_group_quant_int8(
    MaybeInplace, const Value& x, const Value& x_residual, const Value& weight, Scalar epsilon, std::int64_t group_size,
    std::optional<std::int64_t> variance_size = std::nullopt, std::string_view intermediate = "f32", Scalar eps = 1e-10,
    std::string_view rounding = "nearest", CallSite site = CallSite::current());

}  // namespace weft
