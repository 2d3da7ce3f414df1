#include "ir/donation.h"

#include "base/error.h"
#include "ir/alias.h"
#include "ir/print.h"

namespace weft {
namespace {

using Positions = std::map<const Node*, int>;

std::string shown(const Node& node) {
  std::string text = node.line > 0          ? fmt::format("line {}, `", node.line)
                     : node.site.line() > 0 ? fmt::format("{}:{}, `", node.site.file_name(), node.site.line())
                                            : "`";
  if (node.kind != NodeKind::result) return text + display_node(node) + "`";
  for (const GraphValue* value : node.operands) text += (value == node.operands[0] ? "return %" : ", %") + value->name;
  return text + "`";
}

bool is_unread_view(const Node& node) { return node.op != nullptr && node.op->is_view && node.result()->uses.empty(); }

// Returns the first other use, at the node or after it, of the memory that the node donates with `argument`; null when
// there is none. Sets `used` to the value that this use reads.
const Use* first_use_again(const Node& node, int argument, const Positions& positions, const GraphValue*& used) {
  GraphValue* donated = node.operands[static_cast<std::size_t>(argument)];
  const MemoryLocation given = location_of(donated);
  const Use* first = nullptr;
  for (const GraphValue* alias : aliases(storage_root(donated))) {
    if (!may_overlap(given, location_of(alias))) continue;
    for (const Use& use : alias->uses) {
      const bool is_the_gift = use.node == &node && use.operand == argument;
      if (is_the_gift || positions.at(use.node) < positions.at(&node) || is_unread_view(*use.node)) continue;
      if (first != nullptr && positions.at(first->node) <= positions.at(use.node)) continue;
      first = &use;
      used = alias;
    }
  }
  return first;
}

void check_not_used_again(const Node& node, int argument, const Positions& positions) {
  const GraphValue* used = nullptr;
  const Use* use = first_use_again(node, argument, positions, used);
  if (use == nullptr) return;
  const std::string& donated = node.operands[static_cast<std::size_t>(argument)]->name;
  const std::string through = used->name == donated ? "" : fmt::format(" through %{}", used->name);
  const char* advice = "without maybe_inplace, or clone it first";
  USER_CHECK(use->node != &node, "[{}] %{} is given away and taken{} as argument {} by one call, {}: call it {}",
             node.name, donated, through, use->operand, shown(node), advice);
  fail_user("[{}] %{} is used again after it was given away: {} gives it away, {} {} it{}; call {} {}", node.name,
            donated, shown(node), shown(*use->node), use->node->kind == NodeKind::result ? "returns" : "uses", through,
            node.name, advice);
}

}  // namespace

void check_donations(const Graph& graph) {
  const auto positions = node_positions(graph);
  for (const auto& node : graph.nodes()) {
    if (!node->maybe_inplace || node->op == nullptr) continue;
    for (const Donation& donation : node->op->donates) {
      GraphValue* given = node->operands[static_cast<std::size_t>(donation.argument)];
      if (given == nullptr) continue;
      check_not_used_again(*node, donation.argument, positions);
      const GraphValue* root = storage_root(given);
      USER_CHECK(root->producer != nullptr || !root->param, "[{}] %{} is a weight and cannot be given away", node->name,
                 root->name);
    }
  }
}

}  // namespace weft
