#pragma once

#include <optional>

#include "ir/value.h"

namespace weft {

// beta * tanh(gate / beta) * sigmoid(gate) * up, where linear_beta is given with linear_beta * tanh(up / linear_beta)
// for up: a silu that beta bounds. In f32, rounded to the dtype once.
//   x [..., 2 d], gate first -> [..., d]
Value situ_and_mul(const Value& x, Scalar beta, std::optional<double> linear_beta = std::nullopt,
                   CallSite site = CallSite::current());

}  // namespace weft
