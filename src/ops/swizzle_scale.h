#pragma once

#include "ir/value.h"

namespace weft {

// Reorders the scales of blocks (one row of scales for each row of a matrix) to the order in which tensor cores read
// them: tiles of 128 rows and 4 columns. A tile is 32 groups of 16 bytes; row r of a tile is in group r % 32 at byte (r
// / 32) * 4. Padding is zero. The shape of the result only counts the elements of the tiles, which are stored one after
// another. Its dim 0 is 1, because dim 0 of a value in a graph is a number or the rows of the step.
//   x [m, c] of one-byte elements -> [1, align(m, 128), align(c, 4)]
Value swizzle_scale(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
