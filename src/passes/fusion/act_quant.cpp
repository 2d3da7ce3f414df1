// Fuses a gated activation and the quantization of its result: for example, `silu_and_mul` and
// `per_token_group_quant_fp8` become `silu_and_mul_per_token_group_quant_fp8`.

#include "passes/quant_patterns.h"

PATTERNS(act_quant) { add_quant_patterns(patterns, {"silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"}); }
