#pragma once

#include "ir/value.h"

namespace weft {

// A gated GELU that passes only the largest gates of each row: those above mean(gate) + std_multiplier * std(gate). The
// standard deviation is that of the whole row (biased). Each step rounds to x's dtype.
//   x [..., 2 d], gate first -> [..., d]; approximate is erf (what vLLM calls none) or tanh
Value gelu_and_mul_sparse(const Value& x, double std_multiplier, std::string_view approximate = "erf",
                          CallSite site = CallSite::current());

}  // namespace weft
