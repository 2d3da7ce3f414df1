#include "ir/alias.h"

#include <algorithm>

namespace weft {

const GraphValue* storage_root(const GraphValue* value) {
  while (value->producer != nullptr && value->producer->op != nullptr && value->producer->op->is_view)
    value = value->producer->operands[0];
  return value;
}

GraphValue* storage_root(GraphValue* value) {
  return const_cast<GraphValue*>(storage_root(const_cast<const GraphValue*>(value)));
}

Dim storage_offset(const GraphValue* value) {
  Dim offset = 0;
  while (value->producer != nullptr && value->producer->op != nullptr && value->producer->op->is_view) {
    const Node& view = *value->producer;
    offset = offset + view.op->view_offset(view.operands[0]->meta, view.attributes);
    value = view.operands[0];
  }
  return offset;
}

MemoryLocation location_of(const GraphValue* value) {
  return {storage_root(value), footprint(value->meta, storage_offset(value))};
}

bool may_overlap(const MemoryLocation& a, const MemoryLocation& b) {
  return a.root == b.root && may_overlap(a.part, b.part);
}

std::vector<GraphValue*> aliases(GraphValue* root) {
  std::vector<GraphValue*> found{root};
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const Use& use : found[i]->uses)
      if (use.operand == 0 && use.node->op != nullptr && use.node->op->is_view) found.push_back(use.node->result());
  return found;
}

const GraphValue* home_of(const GraphValue* value) {
  for (;;) {
    value = storage_root(value);
    if (value->producer == nullptr || value->producer->op == nullptr) return value;
    const Node& node = *value->producer;
    const GraphValue* next = nullptr;
    for (const Donation& donation : node.op->donates)
      if (donation.result == value->index &&
          std::find(node.writes.begin(), node.writes.end(), donation.argument) != node.writes.end())
        next = node.operands[static_cast<std::size_t>(donation.argument)];
    if (next == nullptr) return value;
    value = next;
  }
}

}  // namespace weft
