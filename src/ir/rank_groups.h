#pragma once

// The groups of ranks that a graph needs. An op runs over ranks when its schema has world_size and group_name.

#include <cstdint>
#include <map>
#include <string>

#include "ir/graph.h"

namespace weft {

bool is_over_ranks(const Op& op);

// Returns the number of ranks of each group of the graph, by the group's name. Groups of one rank are left out.
// UserError when nodes disagree on a group.
std::map<std::string, std::int64_t> rank_groups(const Graph& graph);

}  // namespace weft
