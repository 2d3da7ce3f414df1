#pragma once

#include "ir/value.h"

namespace weft {

// What the ranks of a group have, one after another along `dim`, on each of them. See over_ranks.h.
Value all_gather(const Value& x, std::int64_t dim, std::int64_t world_size, std::string_view group_name,
                 CallSite site = CallSite::current());

}  // namespace weft
