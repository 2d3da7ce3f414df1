#pragma once

#include "ir/value.h"

namespace weft {

// Returns this rank's part of x along `dim`. all_gather of these parts is x again. See over_ranks.h.
Value rank_slice(const Value& x, std::int64_t dim, std::int64_t world_size, std::string_view group_name,
                 CallSite site = CallSite::current());

}  // namespace weft
