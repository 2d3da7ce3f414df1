#pragma once

#include "ir/value.h"

namespace weft {

// Returns the k largest elements of each row, the largest first, and their indices. Of equal elements the one with the
// lower index is first, and NaN is larger than any number. A row may consist of `groups` groups of equal size: then
// only elements of the `used_groups` best groups are chosen, and the score of a group is the sum of its `group_top`
// largest elements.
//   x [..., n] -> values [..., k], indices i32[..., k]
std::pair<Value, Value> topk(const Value& x, std::int64_t k, std::int64_t groups = 1, std::int64_t used_groups = 1,
                             std::int64_t group_top = 1, CallSite site = CallSite::current());

}  // namespace weft
