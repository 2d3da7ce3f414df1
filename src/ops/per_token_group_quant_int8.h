#pragma once

#include "ir/value.h"

namespace weft {

// Codes and scales of groups along each row: scale = max(largest magnitude, eps) / 127, code = x / scale rounded to the
// nearest (rounding=nearest, halves to even) or towards zero (rounding=toward_zero, as vLLM's Triton kernel does). NaN
// gives 0.
//   x [..., d] -> i8 like x, f32 [..., d / group_size]
std::pair<Value, Value> per_token_group_quant_int8(Value x, std::int64_t group_size, Scalar eps = 1e-10,
                                                   std::string rounding = "nearest");

}  // namespace weft
