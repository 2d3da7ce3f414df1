#pragma once

#include "ir/value.h"

namespace weft {

// Returns x times the transpose of weight, both NVFP4: codes times the scales of their blocks of 16, in f32, times
// weight_global_scale / global_scale, plus bias, rounded to the dtype. global_scale is the operand that was given to
// scaled_fp4_quant; weight_global_scale is the checkpoint's factor (scaled_fp4_dequant). With intermediate=output_dtype
// both sides are first dequantized to the dtype, as in vLLM's emulation.
//   x f4e2m1 [M, K], scale f8e4m3, global_scale f32 [1], weight f4e2m1 [N, K], weight_scale f8e4m3,
//   weight_global_scale f32 [1], bias [N] -> dtype [M, N]
Value linear_nvfp4(const Value& x, const Value& scale, const Value& global_scale, const Value& weight,
                   const Value& weight_scale, const Value& weight_global_scale, const Value& bias = {},
                   bool swizzled_scales = true, std::string_view intermediate = "f32", DType dtype = DType::bf16,
                   CallSite site = CallSite::current());

}  // namespace weft
