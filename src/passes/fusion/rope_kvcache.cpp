// Query and key are rotated by the op that puts the key into its pages: nobody else reads it.

#include "passes/rope_patterns.h"

PATTERNS(rope_kvcache) {
  patterns.only_where(no_rope_in_cache_update);
  add_rope_pattern(patterns, "fused_rope_kv_cache_update", {.cache_update = true});
}
