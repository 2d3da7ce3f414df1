#pragma once

// What families that have Llama's layers share.

#include "nn/builder.h"

namespace weft::nn {

// The forward graph: pre_norm_layers of self_attention and gated_feed_forward.
Values llama_forward(Builder& builder);

// The checks of a decoder with a gated feed-forward, and of one without a gate. UserErrors as of check_decoder and
// check_gated_activation or check_plain_activation.
void check_gated_decoder(const ModelConfig& config);
void check_plain_decoder(const ModelConfig& config);

}  // namespace weft::nn
