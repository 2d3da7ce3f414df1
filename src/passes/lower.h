#pragma once

// The part of lowering that runs when pieces are compiled.

#include "passes/pass.h"

namespace weft {

// Replaces each native op that is not a primitive by its meaning, and lowers that meaning as the pass `lower` does. The
// graph is at stage lowered.
void write_out_meanings(Graph& graph, PassContext& context);

}  // namespace weft
