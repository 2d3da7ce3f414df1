#pragma once

#include "ir/value.h"

namespace weft {

// The scales of blocks, a row of them for each row of a matrix, in the order in which tensor cores read them: tiles of
// 128 rows and 4 columns, each tile 32 groups of 16 bytes, row r of a tile in group r % 32 at (r / 32) * 4. Padding is
// zero. The shape of the result only counts its elements, which are those of the tiles, one tile after another; dim 0
// is 1, as that of a graph's value is a number or the rows of the step.
//   x [m, c] of one-byte elements -> [1, align(m, 128), align(c, 4)]
Value swizzle_scale(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
