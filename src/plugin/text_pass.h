#pragma once

// A pass from text to text: the simplest interface that says everything about a graph.

#include <string>

#include "ir/graph.h"

namespace weft {

// Makes the graph what the text says. UserError, beginning with `who`, when the text does not parse, is illegal at the
// graph's stage, or changes what callers see: the inputs, the types of the results, the bounds of the symbols.
void replace_by_text(Graph& graph, const std::string& text, const OpTable& ops, const std::string& who);

}  // namespace weft
