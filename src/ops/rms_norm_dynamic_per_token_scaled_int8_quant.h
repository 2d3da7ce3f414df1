#pragma once

#include "ir/value.h"

namespace weft {

// Applies dynamic_per_token_scaled_int8_quant to the result of rms_norm. Returns codes and scales.
//   x [..., d], weight [d] or none -> i8 [..., d], f32 [..., 1]
std::pair<Value, Value> rms_norm_dynamic_per_token_scaled_int8_quant(
    const Value& x, const Value& weight, Scalar epsilon, std::optional<std::int64_t> variance_size = std::nullopt,
    CallSite site = CallSite::current());

}  // namespace weft
