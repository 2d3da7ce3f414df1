#pragma once

// What --why-not asks: a pattern held against a graph as its pass would find it.

#include "compiler/context.h"
#include "ir/pattern_rewrite.h"

namespace weft {

// In the graph that stands before the pass which applies the pattern, with everything switched on and off as the
// Context's options say. For a pattern that no pass applies, in the last one of stage pure.
PatternFindings find_as_compiled(const Graph& traced, const Pattern& pattern, const Context& context, TokenRange range);

}  // namespace weft
