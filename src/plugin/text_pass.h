#pragma once

// A pass from text to text: the simplest interface that can express everything about a graph.

#include <string>

#include "ir/graph.h"

namespace weft {

// Replaces the graph by the graph in the text. UserError, beginning with `who`, if the text does not parse, is illegal
// at the graph's stage, or changes what callers see: the inputs, the types of the results, the bounds of the symbols.
void replace_by_text(Graph& graph, const std::string& text, const OpTable& ops, const std::string& who);

}  // namespace weft
