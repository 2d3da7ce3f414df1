#pragma once

// What lowering leaves for when pieces are compiled.

#include "passes/pass.h"

namespace weft {

// Puts the meaning of each native op that is no primitive into its place, lowered as lower does it with the meanings it
// writes out itself. The graph is at stage lowered.
void write_out_meanings(Graph& graph, PassContext& context);

}  // namespace weft
