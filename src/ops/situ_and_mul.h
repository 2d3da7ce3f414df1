#pragma once

#include <optional>

#include "ir/value.h"

namespace weft {

// Returns beta * tanh(gate / beta) * sigmoid(gate) * up, a silu that beta bounds. If linear_beta is given, up is
// replaced by linear_beta * tanh(up / linear_beta). It is computed in f32 and rounded to the dtype once.
//   x [..., 2 d], gate first -> [..., d]
Value situ_and_mul(const Value& x, Scalar beta, std::optional<double> linear_beta = std::nullopt,
                   CallSite site = CallSite::current());

}  // namespace weft
