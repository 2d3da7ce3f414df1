// Fuses the rotation of query and key with the op that writes the key to its pages. No other op reads the rotated key.

#include "passes/rope_patterns.h"

PATTERNS(rope_kvcache) {
  patterns.only_where(no_rope_in_cache_update);
  add_rope_pattern(patterns, "fused_rope_kv_cache_update", {.cache_update = true});
}
