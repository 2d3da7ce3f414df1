#pragma once

#include "ir/op.h"

namespace weft {

// Returns codes of x * (1 / scale), clamped to the range of the dtype. scale is one value for all of x ([] or [1]), or
// a matrix with one scale for each group of rows and columns of a matrix x. A vector of scales needs group_shape =
// [rows, columns] (-1 means the whole dim) and is one row or column of such groups.
//   x [..., d], scale f32 -> dtype like x
Value static_scaled_fp8_quant(const Value& x, const Value& scale, std::optional<Shape> group_shape = std::nullopt,
                              DType dtype = DType::f8e4m3, CallSite site = CallSite::current());

// Ops that end with this quantization share these: its attributes, and the check of its scale for values of this shape
// (`scale` is the operand index; throws UserError).
inline constexpr const char* kStaticFp8Attributes = "int[]? group_shape=None, ScalarType dtype=f8e4m3";
void check_static_fp8(const OpRequest& request, const char* op, const Shape& shape, std::size_t scale);

}  // namespace weft
