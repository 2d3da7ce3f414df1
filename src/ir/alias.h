#pragma once

// Finds which values share memory. The result of a view aliases its operand. Every other result has its own storage,
// until lowering lets a kernel write over an argument (see home_of).

#include "ir/graph.h"
#include "tensor/footprint.h"

namespace weft {

// The part of its root's storage that a value occupies. Views are followed to the root.
struct MemoryLocation {
  const GraphValue* root = nullptr;
  Footprint part;
};

// The value whose storage this one aliases. Views are followed; a value that no view made is its own root.
const GraphValue* storage_root(const GraphValue* value);
GraphValue* storage_root(GraphValue* value);
// The value's offset in the root's storage, in elements.
Dim storage_offset(const GraphValue* value);
MemoryLocation location_of(const GraphValue* value);

// Whether two values may share a byte.
bool may_overlap(const MemoryLocation& a, const MemoryLocation& b);

// The root and all values that are views of it, in order of definition.
std::vector<GraphValue*> aliases(GraphValue* root);

// At stage lowered: the value whose storage holds this one. Views, and kernels that write over an argument, are
// followed. It is an input, or the result of a node that allocates its storage.
const GraphValue* home_of(const GraphValue* value);

}  // namespace weft
