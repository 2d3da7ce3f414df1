#pragma once

#include "ir/op.h"

namespace weft {

// Returns codes and scales of groups along each row. scale = max(largest magnitude, eps) / 127. code = x / scale,
// rounded to the nearest (rounding=nearest, halves to even) or towards zero (rounding=toward_zero, as in vLLM's Triton
// kernel). A NaN gets code 0.
//   x [..., d] -> i8 like x, f32 [..., d / group_size]
std::pair<Value, Value> per_token_group_quant_int8(const Value& x, std::int64_t group_size, Scalar eps = 1e-10,
                                                   std::string_view rounding = "nearest",
                                                   CallSite site = CallSite::current());

// Ops that end with this quantization and have its attributes under the same names share these: the attributes of a
// typed call, the check for an op that quantizes rows of `columns` made from its first operand (throws UserError), and
// the quantization itself.
std::array<GivenAttribute, 3> int8_group_attributes(std::int64_t group_size, Scalar eps, std::string_view rounding);
void check_int8_groups(const OpRequest& request, const char* op, const Dim& columns);
std::pair<Value, Value> quantized_int8_groups(const Value& x, const Attributes& attributes);

}  // namespace weft
