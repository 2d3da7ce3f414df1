#pragma once

// The mixture of experts of a layer.

#include <functional>

#include "nn/builder.h"

namespace weft::nn {

// Combines gate and up, [rows, 2 n] -> [rows, n].
using GateFunction = std::function<Value(const Value& gate_up)>;

// [s0, d] -> [s0, d]. The router chooses some experts for each token, whose rows are sorted by expert, so that each
// weight is read once and those of other experts are not read. `gate` combines gate and up as in a feed-forward, or is
// the activation of up where experts have no gates. Experts may read and write projections of x. The
// shared expert, if there is one, computes all tokens. With ffn_down_exps.scale, a number for each expert, the weights
// of a token's experts are multiplied by theirs.
Value routed_feed_forward(Builder& builder, const Value& x, const GateFunction& gate, int layer);
// The same with another input of the router.
Value routed_feed_forward(Builder& builder, const Value& x, const Value& router_input, const GateFunction& gate,
                          int layer);

}  // namespace weft::nn
