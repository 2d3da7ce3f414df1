#pragma once

#include "ir/op.h"

namespace weft {

// Repeats each element of x over a block: y[i, j] = x[i / rows, j / columns] with block = [rows, columns]. The last
// blocks along each dim may be smaller.
//   x [ceil(M / rows), ceil(N / columns)], shape [M, N] -> [M, N]
Value spread_blocks(const Value& x, Shape shape, Shape block, CallSite site = CallSite::current());

}  // namespace weft
