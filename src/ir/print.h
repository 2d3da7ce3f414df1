#pragma once

// Graphs as text. The grammar is in docs/graph-text.md.
//
// `display` keeps the author's names, origins and param keys. `canonical` renumbers values in order and drops graph and
// piece names, param keys, origins and `where`; equality, the structural hash and cache keys are defined on it.

#include <string>

#include "base/content_hash.h"
#include "ir/graph.h"

namespace weft {

std::string display(const Graph& graph);
std::string canonical(const Graph& graph);

// One node as display prints it, without indentation or origin; for messages.
std::string display_node(const Node& node);

bool structurally_equal(const Graph& a, const Graph& b);
// The same without printing the graphs. They must use the same table of ops and contain no calls. NaNs with different
// bits are different.
bool has_equal_nodes(const Graph& a, const Graph& b);
// The same, except that numbers which the schemas mark as liftable may differ.
bool has_equal_nodes_but_for_scalars(const Graph& a, const Graph& b);
ContentHash structural_hash(const Graph& graph);

// Gives each unnamed value the name that display prints: `op_N`, skipping names that are taken.
void assign_names(Graph& graph);

}  // namespace weft
