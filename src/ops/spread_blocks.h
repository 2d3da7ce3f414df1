#pragma once

#include "ir/op.h"

namespace weft {

// A matrix of which each element of x fills a block: y[i, j] = x[i / rows, j / columns], block = [rows, columns]. The
// last blocks of a row or column may be short.
//   x [ceil(M / rows), ceil(N / columns)], shape [M, N] -> [M, N]
Value spread_blocks(const Value& x, Shape shape, Shape block, CallSite site = CallSite::current());

}  // namespace weft
