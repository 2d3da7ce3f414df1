#pragma once

#include "nn/builder.h"

namespace weft::nn {

// The feed-forward of a layer, [s0, d] -> [s0, d], or its mixture of experts (nn/experts.h). One product computes gate
// and up, by one weight ffn_gate_up of the model's table or by two that are merged. `gate` combines them, and a second
// product computes down.
//   gate: silu_and_mul, gelu_tanh_and_mul, ...; [s0, 2 n] -> [s0, n]
Value gated_feed_forward(Builder& builder, const Value& x, UnaryFunction gate, int layer);

// The same with the config's activation and its factor of the gates; in a layer with a gate cut, of the gates above it.
Value gated_feed_forward(Builder& builder, const Value& x, int layer);

// With any activation that the feed-forward without a gate knows, and a norm, ffn_sub_norm, before down.
Value gated_feed_forward_with_norm(Builder& builder, const Value& x, int layer);

// Of layers that have both: the feed-forward for all tokens, and the mixture of experts, whose router has an input of
// its own.
Value dense_feed_forward(Builder& builder, const Value& x, int layer);
Value expert_feed_forward(Builder& builder, const Value& x, const Value& router_input, int layer);

// The feed-forward without a gate, or a mixture of experts without gates: up, the config's activation, down.
Value plain_feed_forward(Builder& builder, const Value& x, int layer);

// UserError, `[architecture] ...`, unless the config's activation is one that the feed-forward knows: with a gate silu,
// gelu_pytorch_tanh, gelu_new or gelu; without one gelu_pytorch_tanh, gelu_new, gelu, relu, relu2 or silu.
void check_gated_activation(const ModelConfig& config);
void check_plain_activation(const ModelConfig& config);

}  // namespace weft::nn
