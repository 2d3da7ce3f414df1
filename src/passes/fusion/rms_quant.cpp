// Fuses a normalization, with or without the residual sum before it, and the quantization of its result.

#include "passes/quant_patterns.h"

PATTERNS(rms_quant) { add_quant_patterns(patterns, {"fused_add_rms_norm", "rms_norm"}); }
