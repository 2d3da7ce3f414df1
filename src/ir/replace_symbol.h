#pragma once

#include "ir/graph.h"

namespace weft {

// Replaces the symbol by the number in the types of all values and in all attributes, and removes the symbol's bounds.
void replace_symbol(Graph& graph, const std::string& symbol, std::int64_t number);

}  // namespace weft
