#pragma once

#include "ir/op.h"

namespace weft {

// Returns the sum over a dim; the dim is kept with size 1. It adds 64 strided partial sums in a fixed tree
// (tensor/reference_math.h).
Value sum(const Value& x, std::int64_t dim = -1, CallSite site = CallSite::current());

// Returns the type of x with size 1 in the dim that the attribute `dim` names; amax uses it, too. Throws UserError
// unless x is floating and has that dim.
std::vector<Meta> reduction_rule(const OpRequest& request, const char* op);

}  // namespace weft
