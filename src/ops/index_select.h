#pragma once

#include "ir/value.h"

namespace weft {

// Rows (or slices of another dim) of x by number. Of a block-quantized x whole rows are copied, dim 0 only.
Value index_select(const Value& x, const Value& index, std::int64_t dim = 0, CallSite site = CallSite::current());

}  // namespace weft
