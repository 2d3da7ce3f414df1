#pragma once

#include "ir/value.h"

namespace weft {

// Adds the x of all ranks of the group and returns this rank's part of the sum along `dim`. See over_ranks.h.
Value reduce_scatter(const Value& x, std::int64_t dim, std::int64_t world_size, std::string_view group_name,
                     CallSite site = CallSite::current());

}  // namespace weft
