#pragma once

#include "ir/op.h"

namespace weft {

// Returns codes and scales of rows. scale = (the largest magnitude of the row, limited to scale_ub) / 448, and at least
// minimum_scale (by default 1 / (448 * 512)). scale_by and codes_by are `division`, as in vLLM's CUDA kernel, or
// `reciprocal` (fp8_quant.h): vLLM's native form multiplies x by 1 / scale, and its Helion kernel multiplies the
// magnitude by 1 / 448.
//   x [..., d], scale_ub f32 [] or [1] -> dtype like x, f32 [..., 1]
std::pair<Value, Value> dynamic_per_token_scaled_fp8_quant(const Value& x, const Value& scale_ub = {},
                                                           std::optional<double> minimum_scale = std::nullopt,
                                                           std::string_view scale_by = "division",
                                                           std::string_view codes_by = "division",
                                                           DType dtype = DType::f8e4m3,
                                                           CallSite site = CallSite::current());

// Ops that end with this quantization share these: its attributes, and the check of the attributes and of scale_ub (an
// operand index; throws UserError).
inline constexpr const char* kTokenFp8Attributes =
    "float? minimum_scale=None, str scale_by=division, str codes_by=division, ScalarType dtype=f8e4m3";
void check_token_fp8(const OpRequest& request, const char* op, std::size_t scale_ub);

}  // namespace weft
