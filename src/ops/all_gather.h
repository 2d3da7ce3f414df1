#pragma once

#include "ir/value.h"

namespace weft {

// Returns on each rank the x of all ranks of the group, concatenated along `dim` in rank order. See over_ranks.h.
Value all_gather(const Value& x, std::int64_t dim, std::int64_t world_size, std::string_view group_name,
                 CallSite site = CallSite::current());

}  // namespace weft
