// Fuses the normalization and the rotation of the heads of query and key with the op that writes the key to its pages.

#include "passes/rope_patterns.h"

PATTERNS(qk_norm_rope_kvcache) {
  patterns.only_where(no_rope_in_cache_update);
  add_rope_pattern(patterns, "fused_qk_norm_rope_kv_cache_update", {.norms = true, .cache_update = true});
}
