#pragma once

// Patterns that fuse an op with the quantization of its first result.
//
//   %y = silu_and_mul(%x)  %codes, %scale = per_token_group_quant_fp8(%y, group_size=128)
//   ->  %codes, %scale = silu_and_mul_per_token_group_quant_fp8(%x, group_size=128)
//
// There is one pattern for each pair of a front (the op before the quantization) and a quantizing op, and a second one,
// <fused op>_wide, if the fused op can keep the front's result in f32:
//
//   %w = cast(%x, dtype=f32)  %y = silu_and_mul(%w)  %codes, %scale = per_token_group_quant_fp8(%y, group_size=128)
//   ->  %codes, %scale = silu_and_mul_per_token_group_quant_fp8(%x, group_size=128, intermediate=f32)
//
// The schemes that the quantizing op computes are conditions on its attributes; the attributes that the schemes leave
// open are wildcards.

#include "passes/pattern_pass.h"

namespace weft {

// The schemes of activations whose quantization can be fused with the op before it: spec section D.1.
std::vector<QuantKey> joined_schemes(DType fp8);

// Adds the patterns of each front for all joined_schemes of the device. InternalError, with the scheme and the pattern,
// when no op quantizes by a scheme, or no op fuses the front with it.
void add_quant_patterns(PatternList& patterns, const std::vector<std::string>& fronts);

}  // namespace weft
