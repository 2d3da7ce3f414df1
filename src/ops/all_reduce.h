#pragma once

#include "ir/value.h"

namespace weft {

// The sum of what the ranks of a group have, on each of them. See over_ranks.h. Unlike vLLM's it says how many ranks
// there are, as its companions do, so that a graph tells by itself what it is over.
Value all_reduce(const Value& x, std::int64_t world_size, std::string_view group_name,
                 CallSite site = CallSite::current());

}  // namespace weft
