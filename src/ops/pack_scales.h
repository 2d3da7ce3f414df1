#pragma once

#include "ir/value.h"

namespace weft {

// Packs scales that are powers of two, four of one row to a word: byte k % 4, counted from the lowest, of word k / 4 is
// the code of scale k. Missing scales are 0. Words with the same index in their rows are adjacent, and each such column
// begins at a multiple of 16 bytes. DeepGEMM reads this layout.
//   x f8e8m0 [M, G] -> i32 [M, ceil(G / 4)] with strides (1, align(M, 4))
Value pack_scales(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
