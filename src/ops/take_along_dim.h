#pragma once

#include "ir/value.h"

namespace weft {

// Returns, for each index, the element of x at that position of `dim`. The other dims of x and indices are equal.
//   x [..., n, ...], indices i32 or i64 [..., k, ...] -> [..., k, ...]
Value take_along_dim(const Value& x, const Value& indices, std::int64_t dim = -1, CallSite site = CallSite::current());

}  // namespace weft
