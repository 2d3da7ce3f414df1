#pragma once

// Graphs and checks of the families that have Llama's layers.

#include "nn/decoder.h"

namespace weft::nn {

// The forward graph: pre_norm_layers of self_attention and gated_feed_forward.
Values llama_forward(Builder& builder);
// The same with another attention of a layer, [s0, d] -> [s0, d]. nn/attention.h has several.
using LayerAttention = Value (*)(Builder& builder, DecoderStep& step, const Value& x, int layer);
Values llama_forward_with(Builder& builder, LayerAttention attention_of_layer);
// The same with norms of the heads of query and key, if the config has them.
Values llama_forward_with_head_norms(Builder& builder);

// Check the config of a decoder with a gated feed-forward, and of one without a gate. They throw the UserErrors of
// check_decoder and of check_gated_activation or check_plain_activation.
void check_gated_decoder(const ModelConfig& config);
void check_plain_decoder(const ModelConfig& config);

}  // namespace weft::nn
