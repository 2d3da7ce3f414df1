#pragma once

// Which values share memory. A view's result looks into its operand; every other result has storage of its own, until
// lowering lets a kernel write over an argument (see home_of).

#include "ir/graph.h"

namespace weft {

// The part of its root's storage a value covers: every row is `width` elements from `offset`, rows `row_stride` apart.
// Unknown (width -1) where views are too irregular to say; then it counts as the whole storage.
struct Footprint {
  const GraphValue* root = nullptr;
  Dim offset = 0;  // elements from the start of the root's storage, within one row
  std::int64_t width = -1;
  std::int64_t row_stride = -1;
};

// The value whose storage this one looks into, through views: itself when no view made it.
const GraphValue* storage_root(const GraphValue* value);
GraphValue* storage_root(GraphValue* value);
// Elements from the start of the root's storage.
Dim storage_offset(const GraphValue* value);
Footprint footprint(const GraphValue* value);

// Whether two values may share a byte. Columns of one matrix that do not meet are known to be apart.
bool may_overlap(const Footprint& a, const Footprint& b);

// The root and all values that are views of it, in order of definition.
std::vector<GraphValue*> aliases(GraphValue* root);

// At stage lowered: the value in whose storage this one lives, through views and kernels that write over arguments. An
// input, or the result of a node that made fresh storage.
const GraphValue* home_of(const GraphValue* value);

}  // namespace weft
