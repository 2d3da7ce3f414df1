#pragma once

#include "ir/value.h"

namespace weft {

// Powers of two, four of a row to a word: byte k % 4, counted from the lowest, of word k / 4 is the code of scale k.
// Missing ones are 0. The words of one number lie side by side, each such column at a multiple of 16 bytes: what
// DeepGEMM reads.
//   x f8e8m0 [M, G] -> i32 [M, ceil(G / 4)] with strides (1, align(M, 4))
Value pack_scales(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
