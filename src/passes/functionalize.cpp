// functionalize: %o, %r = fused_add_rms_norm.maybe_inplace(%x, %residual, ...)  ->  fused_add_rms_norm(...)
//
// Every op makes new values; what the author gave away is recorded as donated inputs. Reading a donated value again is
// the author's mistake and is refused: by name, through a view, in whatever later piece, or given twice to one call.

#include <algorithm>

#include "base/error.h"
#include "ir/alias.h"
#include "ir/print.h"
#include "passes/all.h"

namespace weft {
namespace {

void check_not_used_again(const Node& node, int argument, const std::map<const Node*, int>& positions) {
  GraphValue* donated = node.operands[static_cast<std::size_t>(argument)];
  const Footprint given = footprint(donated);
  for (const GraphValue* alias : aliases(storage_root(donated))) {
    if (!may_overlap(given, footprint(alias))) continue;
    for (const Use& use : alias->uses) {
      const bool same_slot = use.node == &node && use.operand == argument;
      const bool is_view = use.node->op != nullptr && use.node->op->is_view;
      if (same_slot || positions.at(use.node) < positions.at(&node)) continue;
      if (is_view && positions.at(use.node) > positions.at(&node) && use.node->result()->uses.empty()) continue;
      USER_CHECK(use.node != &node, "[{}] %{} gives away %{}, which the same call also takes as argument {}", node.name,
                 node.result()->name, donated->name, use.operand);
      fail_user(
          "[{}] %{} is used again after the node that it was given away to, by {}: call {} without maybe_inplace, or "
          "clone "
          "it first",
          node.name, donated->name, display_node(*use.node), node.name);
    }
  }
}

}  // namespace

PassResult functionalize(Graph& graph, PassContext&) {
  assign_names(graph);
  const auto positions = node_positions(graph);
  int functionalized = 0, donated_inputs = 0;
  for (const auto& node : graph.nodes()) {
    if (!node->maybe_inplace) continue;
    CHECK(node->op != nullptr && node->op->allow_inplace, "{} has no maybe_inplace form", node->name);
    for (const Donation& donation : node->op->donates) {
      check_not_used_again(*node, donation.argument, positions);
      GraphValue* root = storage_root(node->operands[static_cast<std::size_t>(donation.argument)]);
      if (root->producer != nullptr) continue;
      USER_CHECK(!root->param, "[{}] %{} is a weight and cannot be given away", node->name, root->name);
      donated_inputs += root->donated ? 0 : 1;
      root->donated = true;
    }
    node->maybe_inplace = false;
    ++functionalized;
  }
  graph.stage = Stage::pure;
  return {.counts = {{"functionalized", functionalized}, {"donated inputs", donated_inputs}}};
}

}  // namespace weft
