// common_subexpression_elimination: equal calls on equal values become one.
//
//   %a = silu(%x)  %b = silu(%x)  use(%a, %b)   ->   %a = silu(%x)  use(%a, %a)
//
// For example, q, k and v then share one quantization of their input. Allocations (`empty`) and copies (`clone`) are
// never merged.

#include <algorithm>
#include <tuple>

#include "passes/all.h"

namespace weft {

PassResult common_subexpression_elimination(Graph& graph, PassContext&) {
  // Values are numbered in order of definition, so that the result does not depend on addresses.
  std::map<const GraphValue*, int> number{{nullptr, -1}};
  for (const auto& input : graph.inputs()) number.emplace(input.get(), static_cast<int>(number.size()));
  std::map<std::tuple<std::string, std::vector<int>, std::string>, Node*> seen;
  int removed = 0;
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    Node* node = (it++)->get();
    for (const auto& result : node->results) number.emplace(result.get(), static_cast<int>(number.size()));
    if (node->op == nullptr || node->op->is_allocation || node->is("clone") || !node->writes.empty()) continue;
    std::vector<int> operands;
    for (const GraphValue* operand : node->operands) operands.push_back(number.at(operand));
    if (node->op->is_commutative) std::sort(operands.begin(), operands.begin() + 2);
    std::string attributes = node->provider;
    for (const auto& [key, value] : node->attributes.entries()) attributes += ";" + key + "=" + value.text();
    const auto [first, is_new] = seen.try_emplace({node->name, operands, attributes}, node);
    if (is_new) continue;
    for (std::size_t i = 0; i < node->results.size(); ++i)
      graph.replace_all_uses(node->results[i].get(), first->second->results[i].get());
    graph.erase(node);
    ++removed;
  }
  return {.counts = {{"removed", removed}}};
}

}  // namespace weft
