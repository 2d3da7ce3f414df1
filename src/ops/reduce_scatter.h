#pragma once

#include "ir/value.h"

namespace weft {

// A rank's part, by its place along `dim`, of the sum of what the ranks of a group have. See over_ranks.h.
Value reduce_scatter(const Value& x, std::int64_t dim, std::int64_t world_size, std::string_view group_name,
                     CallSite site = CallSite::current());

}  // namespace weft
