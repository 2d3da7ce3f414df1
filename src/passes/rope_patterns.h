#pragma once

// Patterns that join the rotation of query and key with what stands before and behind it in a layer.

#include "passes/pattern_pass.h"

namespace weft {

struct RopeNeighbours {
  bool norms = false;         // rms_norm of each head of query and key before it
  bool cache_update = false;  // kv_cache_update with the rotated key behind it
};

// One whose `after` is the op. InternalError when the op does not fit.
void add_rope_pattern(PatternList& patterns, const char* op, RopeNeighbours neighbours);

// Why a rotation shall not go into the cache update: the user set a limit to rows, which the range exceeds, or the
// graph is cut at the update, and the rotation belongs to the piece before it.
std::optional<std::string> no_rope_in_cache_update(const PassContext& context);

}  // namespace weft
