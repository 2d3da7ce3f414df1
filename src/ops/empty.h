#pragma once

#include "ir/value.h"

namespace weft {

// Fresh memory whose contents are undefined.
Value empty(Evaluator& evaluator, Shape shape, DType dtype, CallSite site = CallSite::current());

}  // namespace weft
