#pragma once

// Patterns that join an op and the quantization of its first result.
//
//   %y = silu_and_mul(%x)  %codes, %scale = per_token_group_quant_fp8(%y, group_size=128)
//   ->  %codes, %scale = silu_and_mul_per_token_group_quant_fp8(%x, group_size=128)
//
// One pattern for each front and each quantizing op: the schemes that the op computes are conditions on its
// attributes, all that the schemes leave open are wildcards.

#include "passes/pattern_pass.h"

namespace weft {

// The schemes of activations that can be joined with what makes them: spec section D.1.
std::vector<QuantKey> joined_schemes(DType fp8);

// For all joined_schemes of the device. InternalError that names the scheme and the pattern when no op quantizes so, or
// none is the front and the quantization in one.
void add_quant_patterns(PatternList& patterns, const std::vector<std::string>& fronts);

}  // namespace weft
