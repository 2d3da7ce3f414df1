#pragma once

#include "ir/op.h"

namespace weft {

// Codes of x * (1 / scale), held to the range of the dtype. One scale for all of x ([] or [1]), or a matrix of scales,
// one for each group of rows and columns of a matrix x; a vector of scales needs group_shape = [rows, columns], -1 for
// all of them, and fills one row or column of such groups.
//   x [..., d], scale f32 -> dtype like x
Value static_scaled_fp8_quant(const Value& x, const Value& scale, std::optional<Shape> group_shape = std::nullopt,
                              DType dtype = DType::f8e4m3, CallSite site = CallSite::current());

// What ops share that end in this one: its attributes, what its scale must be for values of this shape (UserError
// otherwise; `scale` is the operand's number), and the last step.
inline constexpr const char* kStaticFp8Attributes = "int[]? group_shape=None, ScalarType dtype=f8e4m3";
void check_static_fp8(const OpRequest& request, const char* op, const Shape& shape, std::size_t scale);
Value quantized_static_fp8(const Value& x, const Value& scale, const Attributes& attributes);

}  // namespace weft
