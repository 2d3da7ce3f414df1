#pragma once

#include "ir/value.h"

namespace weft {

// Returns a view of the elements start, start + step, ... below end of one dim.
Value slice(const Value& x, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step = 1,
            CallSite site = CallSite::current());

}  // namespace weft
