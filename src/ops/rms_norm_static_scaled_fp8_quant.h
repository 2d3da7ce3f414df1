#pragma once

#include "ir/value.h"

namespace weft {

// Applies static_scaled_fp8_quant to the result of rms_norm. Returns codes.
//   x [..., d], weight [d] or none, scale f32 [1] or groups of it -> dtype [..., d]
Value rms_norm_static_scaled_fp8_quant(const Value& x, const Value& weight, const Value& scale, Scalar epsilon,
                                       std::optional<std::int64_t> variance_size = std::nullopt,
                                       std::optional<Shape> group_shape = std::nullopt, DType dtype = DType::f8e4m3,
                                       CallSite site = CallSite::current());

}  // namespace weft
