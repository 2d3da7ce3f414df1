#pragma once

#include "ir/value.h"

namespace weft {

// The sum over the last dim, kept as 1: 64 strided partial sums and a fixed tree (tensor/house_math.h).
Value sum(Value x);

}  // namespace weft
