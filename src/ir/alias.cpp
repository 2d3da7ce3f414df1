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

Footprint footprint(const GraphValue* value) {
  Footprint result;
  result.root = storage_root(value);
  result.offset = storage_offset(value);
  const Meta& meta = value->meta;
  if (!meta.is_tensor() || meta.shape.size() < 2 || is_block(meta.dtype)) return result;
  const Shape strides = meta.full_strides();
  // A row is dims 1.. ; it is one run of elements when those dims are contiguous among themselves.
  Dim width = 1;
  for (std::size_t i = meta.shape.size(); i-- > 1;) {
    if (!(strides[i] == width)) return result;
    width = width * meta.shape[i];
  }
  if (!width.is_number() || !strides[0].is_number() || !result.offset.is_number()) return result;
  if (result.offset.number() + width.number() > strides[0].number()) return result;
  result.width = width.number();
  result.row_stride = strides[0].number();
  return result;
}

bool may_overlap(const Footprint& a, const Footprint& b) {
  if (a.root != b.root) return false;
  if (a.width < 0 || b.width < 0 || a.row_stride != b.row_stride) return true;
  const std::int64_t a_begin = a.offset.number(), b_begin = b.offset.number();
  return a_begin < b_begin + b.width && b_begin < a_begin + a.width;
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
