// Fuses the normalization and the rotation of the heads of query and key.

#include "passes/rope_patterns.h"

PATTERNS(qk_norm_rope) { add_rope_pattern(patterns, "fused_qk_norm_rope", {.norms = true}); }
