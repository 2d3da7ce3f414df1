#pragma once

#include "ir/value.h"

namespace weft {

// A gated GELU that lets only the largest part of each row's gate through: what lies above
// mean(gate) + std_multiplier * std(gate), the standard deviation being that of the whole row (biased). Every step
// rounds to x's dtype.
//   x [..., 2 d], gate first -> [..., d]; approximate is erf (what vLLM calls none) or tanh
Value gelu_and_mul_sparse(const Value& x, double std_multiplier, std::string_view approximate = "erf",
                          CallSite site = CallSite::current());

}  // namespace weft
