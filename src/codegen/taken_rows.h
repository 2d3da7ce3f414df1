#pragma once

// Rows of a table that a node takes by number (index_select of dim 0). Functions read them where they lie, so that who
// reads the node's result in a function needs no such node.

#include "ir/graph.h"

namespace weft {

// Whether the node takes whole rows of a table that functions can read: a plain one, of known size.
bool takes_whole_rows(const Node& node);

// The same of a node that is native: no kernel was chosen to copy the rows.
bool takes_rows(const Node& node);

// The node that takes the rows which a value looks into, through views; null where none does. Of nodes that are not
// native only `member` counts, if it is one.
const Node* rows_taken_by(const GraphValue& value, const Node* member = nullptr);

}  // namespace weft
