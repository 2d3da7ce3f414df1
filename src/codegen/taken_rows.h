#pragma once

// Rows of a table that a node gathers by row indices (index_select of dim 0). Functions read such rows directly from
// the table, so a function that uses the node's result does not need the node.

#include "ir/graph.h"

namespace weft {

// Whether the node gathers whole rows of a table that functions can read: a plain one, of known size.
bool takes_whole_rows(const Node& node);

// The same for a native node, for which no kernel was chosen to copy the rows.
bool takes_rows(const Node& node);

// The node that gathers the rows that a value views, through any number of views; null if there is none. It must be
// native, or be `member`.
const Node* rows_taken_by(const GraphValue& value, const Node* member = nullptr);

}  // namespace weft
