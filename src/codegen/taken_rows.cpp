#include "codegen/taken_rows.h"

#include <algorithm>

#include "codegen/row_shape.h"
#include "ir/alias.h"

namespace weft {

bool takes_whole_rows(const Node& node) {
  if (node.kind != NodeKind::op || node.name != "index_select") return false;
  const Meta &table = node.operands[0]->meta, &numbers = node.operands[1]->meta;
  return node.attributes.at("dim").integer() == 0 && table.is_contiguous() && numbers.is_contiguous() &&
         table.packed.empty() && is_row_dtype(table.dtype) && table.rank() > 1 &&
         std::all_of(table.shape.begin(), table.shape.end(), [](const Dim& dim) { return dim.is_number(); });
}

bool takes_rows(const Node& node) { return node.provider == "native" && takes_whole_rows(node); }

const Node* rows_taken_by(const GraphValue& value, const Node* member) {
  const Node* producer = storage_root(&value)->producer;
  if (producer == nullptr) return nullptr;
  return takes_rows(*producer) || (producer == member && takes_whole_rows(*producer)) ? producer : nullptr;
}

}  // namespace weft
