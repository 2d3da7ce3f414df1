#pragma once

#include <functional>

#include "ir/value.h"

namespace weft {

// Runs part of a captured function without compiling it: `function` runs on concrete Values, op by op, in each call,
// and returns concrete Values. In a captured function this is a graph break; elsewhere it is a plain call. The
// arguments must have one home, and so must the results; absent Values are ignored. Where the rows of the arguments are
// a symbol, results with the same row count are assumed to have it in each call; a call where that fails is compiled as
// another continuation.
Values run_eagerly(const Values& values, const std::function<Values(const Values&)>& function,
                   std::source_location where = std::source_location::current());

}  // namespace weft
