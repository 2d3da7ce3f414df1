#pragma once

// Which values share memory. A view's result looks into its operand; every other result has storage of its own, until
// lowering lets a kernel write over an argument (see home_of).

#include "ir/graph.h"
#include "tensor/footprint.h"

namespace weft {

// Where a value lies: in the storage of its root, through views.
struct Place {
  const GraphValue* root = nullptr;
  Footprint part;
};

// The value whose storage this one looks into, through views: itself when no view made it.
const GraphValue* storage_root(const GraphValue* value);
GraphValue* storage_root(GraphValue* value);
// Elements from the start of the root's storage.
Dim storage_offset(const GraphValue* value);
Place place_of(const GraphValue* value);

// Whether two values may share a byte.
bool may_overlap(const Place& a, const Place& b);

// The root and all values that are views of it, in order of definition.
std::vector<GraphValue*> aliases(GraphValue* root);

// At stage lowered: the value in whose storage this one lives, through views and kernels that write over arguments. An
// input, or the result of a node that made fresh storage.
const GraphValue* home_of(const GraphValue* value);

}  // namespace weft
