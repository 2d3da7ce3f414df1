#pragma once

// `weft dump code` prints the functions that are generated for graphs, as row programs and as C++.

#include <memory>
#include <ostream>
#include <vector>

#include "compiler/context.h"
#include "ir/graph.h"

namespace weft {

// Prints each function once, with the ops that it computes and the number of its calls. Then it prints the native nodes
// that no function computes, with the reasons. The graphs are at stage split. LLVM is not needed.
void print_code(const std::vector<std::shared_ptr<Graph>>& graphs, const Context& context, bool as_json,
                std::ostream& out);

}  // namespace weft
