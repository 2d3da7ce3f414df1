#pragma once

#include "ir/value.h"

namespace weft {

// Applies scaled_fp4_quant to the result of attention, with the heads of a token concatenated. Returns codes and
// scales.
//   query [s0, heads, head_dim], global_scale f32 [1] -> f4e2m1 [s0, heads * head_dim], f8e4m3 scales of blocks of 16
std::pair<Value, Value> attention_scaled_fp4_quant(const Value& query, const Value& kv, const Value& batch,
                                                   const Value& global_scale, Scalar scale,
                                                   std::optional<std::int64_t> window = std::nullopt,
                                                   bool swizzled_scales = true, CallSite site = CallSite::current());

}  // namespace weft
