// dead_code_elimination: removes nodes whose results have no use. Ops are pure, so they have no other effect.

#include <algorithm>

#include "passes/all.h"

namespace weft {

PassResult dead_code_elimination(Graph& graph, PassContext&) {
  int removed = 0;
  for (auto it = graph.nodes().end(); it != graph.nodes().begin();) {
    Node* node = std::prev(it)->get();
    const bool used = std::any_of(node->results.begin(), node->results.end(),
                                  [](const auto& result) { return !result->uses.empty(); });
    if (used) {
      --it;
      continue;
    }
    graph.erase(node);
    ++removed;
  }
  return {.counts = {{"removed", removed}}};
}

}  // namespace weft
