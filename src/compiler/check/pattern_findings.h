#pragma once

// --why-not: matches a pattern against a graph as its pass would see the graph.

#include "compiler/context.h"
#include "ir/pattern_rewrite.h"

namespace weft {

// Matches in the graph just before the pass that applies the pattern, with all passes and patterns on or off as the
// Context's options say. For a pattern that no pass applies: in the last graph of stage pure.
PatternFindings find_as_compiled(const Graph& traced, const Pattern& pattern, const Context& context, TokenRange range);

}  // namespace weft
