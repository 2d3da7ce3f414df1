#pragma once

#include "ir/value.h"

namespace weft {

// Applies scaled_fp4_quant to the result of rms_norm. Returns codes and scales.
//   x [..., d], weight [d] or none, global_scale f32 [1] -> f4e2m1 [m, d], f8e4m3 scales of blocks of 16
std::pair<Value, Value> rms_norm_scaled_fp4_quant(const Value& x, const Value& weight, const Value& global_scale,
                                                  Scalar epsilon,
                                                  std::optional<std::int64_t> variance_size = std::nullopt,
                                                  bool swizzled_scales = true, CallSite site = CallSite::current());

}  // namespace weft
