#pragma once

#include "nn/builder.h"

namespace weft::nn {

// The feed-forward of a layer, [s0, d] -> [s0, d]. One product computes gate and up, `gate` combines them, and a second
// product computes down.
//   gate: silu_and_mul, gelu_tanh_and_mul, ...; [s0, 2 n] -> [s0, n]
Value gated_feed_forward(Builder& builder, const Value& x, UnaryFunction gate, int layer);

}  // namespace weft::nn
