#pragma once

#include "ir/op.h"

namespace weft {

// The sum over a dim, kept as 1: 64 strided partial sums and a fixed tree (tensor/house_math.h).
Value sum(const Value& x, std::int64_t dim = -1, CallSite site = CallSite::current());

// The type of what is left of x where the dim of the attribute `dim` is reduced to 1; amax shares it. UserError unless
// x is floating and has that dim.
std::vector<Meta> reduction_rule(const OpRequest& request, const char* op);

}  // namespace weft
