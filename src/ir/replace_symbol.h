#pragma once

#include "ir/graph.h"

namespace weft {

// The number in place of the symbol, everywhere: in the types of values and in attributes. The symbol's bounds go.
void replace_symbol(Graph& graph, const std::string& symbol, std::int64_t number);

}  // namespace weft
