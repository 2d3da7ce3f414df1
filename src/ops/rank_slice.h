#pragma once

#include "ir/value.h"

namespace weft {

// A rank's part of x by its place along `dim`: what all_gather puts together from all of them. See over_ranks.h.
Value rank_slice(const Value& x, std::int64_t dim, std::int64_t world_size, std::string_view group_name,
                 CallSite site = CallSite::current());

}  // namespace weft
