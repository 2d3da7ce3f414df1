#pragma once

#include "ir/value.h"

namespace weft {

// Applies per_token_group_quant_int8 to the result of rms_norm. Returns codes and scales.
//   x [..., d], weight [d] or none -> i8 like x, f32 [..., d / group_size]
std::pair<Value, Value> rms_norm_per_token_group_quant_int8(const Value& x, const Value& weight, Scalar epsilon,
                                                            std::int64_t group_size,
                                                            std::optional<std::int64_t> variance_size = std::nullopt,
                                                            Scalar eps = 1e-10, std::string_view rounding = "nearest",
                                                            CallSite site = CallSite::current());

}  // namespace weft
