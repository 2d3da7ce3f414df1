#pragma once

#include <functional>

#include "ir/value.h"

namespace weft {

// Part of a function that is not to be compiled: `function` runs on concrete Values, op by op, in every call, and gives
// concrete Values. While a function is captured this ends a graph; anywhere else it is a plain call. Both take and give
// Values of one home each; of absent ones nothing is asked. Where the rows of the arguments are a symbol, results with
// as many rows are taken to have that many in every call; where one has not, it is compiled as another way to go on.
Values run_eagerly(const Values& values, const std::function<Values(const Values&)>& function,
                   std::source_location where = std::source_location::current());

}  // namespace weft
