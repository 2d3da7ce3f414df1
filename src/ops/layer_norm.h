#pragma once

#include "ir/value.h"

namespace weft {

// Normalizes the last dim: (x - mean) / sqrt(variance + epsilon), with the variance of all its elements; then times
// `weight` and plus `bias`, each of which may be absent. All is computed in f32.
Value layer_norm(const Value& x, const Value& weight, const Value& bias, Scalar epsilon,
                 CallSite site = CallSite::current());

}  // namespace weft
