#pragma once

#include "ir/value.h"

namespace weft {

// Applies per_token_group_quant_int8 to the result of silu_and_mul. Returns codes and scales.
//   x [..., 2 d] -> i8 [..., d], f32 [..., d / group_size]
std::pair<Value, Value> silu_and_mul_per_token_group_quant_int8(const Value& x, std::int64_t group_size,
                                                                Scalar eps = 1e-10,
                                                                std::string_view rounding = "nearest",
                                                                CallSite site = CallSite::current());

}  // namespace weft
