#pragma once

#include "ir/value.h"

namespace weft {

// Concatenates tensors along a dim.
Value concat(const Values& tensors, std::int64_t dim, CallSite site = CallSite::current());

}  // namespace weft
