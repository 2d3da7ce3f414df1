#pragma once

// --why-not and `weft graph match`: matches patterns against a graph as their passes see the graph.

#include <span>
#include <vector>

#include "compiler/context.h"
#include "ir/pattern_rewrite.h"

namespace weft {

// `of_patterns` is in the order of the patterns that were asked for. `others` are the reports of passes that recover
// ops without a pattern, as `raise` does, and that have near misses.
struct CompiledFindings {
  std::vector<PatternFindings> of_patterns;
  std::vector<PatternReport> others;
};

// Matches each pattern in the graph just before the pass that applies it, after all passes before that one, with passes
// and patterns on or off as the Context's options say. A match that the pass does not replace is a miss, with the
// reason of the pass. There is no near miss where another pattern of the fusion matches. A pattern that no pass applies
// is matched in the last graph of stage pure. The graph is at stage traced or pure.
CompiledFindings find_as_compiled(const Graph& traced, std::span<const Pattern* const> patterns, const Context& context,
                                  TokenRange range);
PatternFindings find_as_compiled(const Graph& traced, const Pattern& pattern, const Context& context, TokenRange range);

}  // namespace weft
