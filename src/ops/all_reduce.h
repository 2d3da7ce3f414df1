#pragma once

#include "ir/value.h"

namespace weft {

// Returns on each rank the sum of the x of all ranks of the group. See over_ranks.h. Unlike vLLM's op it has a
// world_size attribute, as the other ops over ranks have, so that the graph alone shows how many ranks take part.
Value all_reduce(const Value& x, std::int64_t world_size, std::string_view group_name,
                 CallSite site = CallSite::current());

}  // namespace weft
