#pragma once

#include "ir/value.h"

namespace weft {

// Gathers rows of x (or slices along another dim) by index. If x is block-quantized, dim must be 0, and whole rows are
// copied.
Value index_select(const Value& x, const Value& index, std::int64_t dim = 0, CallSite site = CallSite::current());

}  // namespace weft
