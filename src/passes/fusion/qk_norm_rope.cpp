// The heads of query and key, normalized and rotated, leave one op.

#include "passes/rope_patterns.h"

PATTERNS(qk_norm_rope) { add_rope_pattern(patterns, "fused_qk_norm_rope", {.norms = true}); }
