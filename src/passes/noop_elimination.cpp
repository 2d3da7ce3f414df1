// noop_elimination: removes views, casts and clones that change nothing.
//
//   reshape(reshape(%x))            ->  reshape(%x)
//   reshape, slice of equal type    ->  %x
//   cast to the type it has         ->  %x
//   rank_slice(all_gather(%x))      ->  %x, over one group and dim

#include "ir/print.h"
#include "passes/all.h"

namespace weft {
namespace {

// Returns a replacement for the node's result, or null.
GraphValue* replacement(Graph& graph, Node* node) {
  GraphValue* x = node->operands[0];
  if (node->is("reshape") && x->producer != nullptr && x->producer->is("reshape") &&
      x->producer->operands[0]->meta.is_contiguous()) {
    graph.set_operand(node, 0, x->producer->operands[0]);
    x = node->operands[0];
  }
  if (node->is("rank_slice") && x->producer != nullptr && x->producer->is("all_gather") &&
      x->producer->attributes == node->attributes)
    return x->producer->operands[0]->meta == node->result()->meta ? x->producer->operands[0] : nullptr;
  const bool may_be_noop = node->is("reshape") || node->is("slice") || node->is("cast");
  return may_be_noop && x->meta == node->result()->meta ? x : nullptr;
}

}  // namespace

PassResult noop_elimination(Graph& graph, PassContext& context) {
  if (context.options.eliminate_noops == false) return {};
  int removed = 0;
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    Node* node = (it++)->get();
    if (node->operands.empty() || node->operands[0] == nullptr || node->results.size() != 1) continue;
    GraphValue* value = replacement(graph, node);
    if (value == nullptr) continue;
    graph.replace_all_uses(node->result(), value);
    graph.erase(node);
    ++removed;
  }
  return {.counts = {{"removed", removed}}};
}

}  // namespace weft
