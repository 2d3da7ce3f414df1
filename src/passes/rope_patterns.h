#pragma once

// Patterns that fuse the rotation of query and key with the ops before and after it in a layer.

#include "passes/pattern_pass.h"

namespace weft {

struct RopeNeighbours {
  bool norms = false;         // fuse the rms_norm of each head of query and key before the rotation
  bool cache_update = false;  // fuse the kv_cache_update with the rotated key after the rotation
};

// Adds the pattern whose `after` is `op`. InternalError when the op does not fit.
void add_rope_pattern(PatternList& patterns, const char* op, RopeNeighbours neighbours);

// Returns why a rotation must not be fused into the cache update. Either the user set a limit of rows, which the range
// exceeds; or the graph is split at the update, and the rotation belongs to the piece before it.
std::optional<std::string> no_rope_in_cache_update(const PassContext& context);

}  // namespace weft
