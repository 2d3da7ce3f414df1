#pragma once

#include "nn/builder.h"

namespace weft::nn {

// x [s0, d] through gate and up, which are one product and which `gate` makes one of, and down again [s0, d].
//   gate: silu_and_mul, gelu_tanh_and_mul, ...; [s0, 2 n] -> [s0, n]
Value gated_feed_forward(Builder& builder, const Value& x, UnaryFunction gate, int layer);

}  // namespace weft::nn
