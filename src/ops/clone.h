#pragma once

#include "ir/value.h"

namespace weft {

// A copy with storage of its own, contiguous.
Value clone(Value x);

}  // namespace weft
