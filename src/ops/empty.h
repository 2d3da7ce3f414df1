#pragma once

#include "ir/value.h"

namespace weft {

// Returns newly allocated memory with undefined contents.
Value empty(Evaluator& evaluator, Shape shape, DType dtype, CallSite site = CallSite::current());

}  // namespace weft
