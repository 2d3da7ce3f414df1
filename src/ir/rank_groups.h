#pragma once

// Which groups of ranks a graph needs. An op is over ranks when its schema has world_size and group_name.

#include <cstdint>
#include <map>
#include <string>

#include "ir/graph.h"

namespace weft {

bool is_over_ranks(const Op& op);

// By name, how many ranks each group of the graph has; those of one rank, which is a process alone, are left out.
// UserError when nodes disagree on a group.
std::map<std::string, std::int64_t> rank_groups(const Graph& graph);

}  // namespace weft
