#pragma once

// The rule for values that an op with `.maybe_inplace` takes: nothing may use them again, by name, through a view that
// overlaps them, or as a second argument of the same call.

#include "ir/graph.h"

namespace weft {

// UserError for the first node of a traced graph that breaks the rule, and for a weight that is donated. It shows both
// uses.
void check_donations(const Graph& graph);

}  // namespace weft
