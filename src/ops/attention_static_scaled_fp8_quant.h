#pragma once

#include "ir/value.h"

namespace weft {

// Applies static_scaled_fp8_quant to the result of attention, with the heads of a token concatenated.
//   query [s0, heads, head_dim], output_scale f32 as static_scaled_fp8_quant takes one -> codes [s0, heads * head_dim]
Value attention_static_scaled_fp8_quant(const Value& query, const Value& kv, const Value& batch,
                                        const Value& output_scale, Scalar scale,
                                        std::optional<std::int64_t> window = std::nullopt,
                                        std::optional<Shape> group_shape = std::nullopt, DType dtype = DType::f8e4m3,
                                        CallSite site = CallSite::current());

}  // namespace weft
