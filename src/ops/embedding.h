#pragma once

#include "ir/value.h"

namespace weft {

// Returns the rows of a table selected by token id, in the given dtype.
//   ids i64 | i32 [s0], weight [vocabulary, width] -> dtype[s0, width]
Value embedding(const Value& ids, const Value& weight, DType dtype = DType::f32, CallSite site = CallSite::current());

}  // namespace weft
