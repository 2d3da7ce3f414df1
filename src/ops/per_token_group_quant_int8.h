#pragma once

#include "ir/op.h"

namespace weft {

// Codes and scales of groups along each row: scale = max(largest magnitude, eps) / 127, code = x / scale rounded to the
// nearest (rounding=nearest, halves to even) or towards zero (rounding=toward_zero, as vLLM's Triton kernel does). NaN
// gives 0.
//   x [..., d] -> i8 like x, f32 [..., d / group_size]
std::pair<Value, Value> per_token_group_quant_int8(const Value& x, std::int64_t group_size, Scalar eps = 1e-10,
                                                   std::string_view rounding = "nearest",
                                                   CallSite site = CallSite::current());

// What ops share that end in this one, with its attributes under the same names: how a typed call states them, what
// they must be where `op` quantizes rows of `columns` made of its first operand (UserError otherwise), and the last
// step.
std::array<GivenAttribute, 3> int8_group_attributes(std::int64_t group_size, Scalar eps, std::string_view rounding);
void check_int8_groups(const OpRequest& request, const char* op, const Dim& columns);
std::pair<Value, Value> quantized_int8_groups(const Value& x, const Attributes& attributes);

}  // namespace weft
