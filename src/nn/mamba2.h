#pragma once

// Mamba 2: the half of a recurrent layer (io/model_config.h: RecurrentConfig), and its weights.

#include "nn/decoder.h"
#include "nn/decoder_weights.h"

namespace weft::nn {

// Maps the norm of the residual sum, x [s0, d], to [s0, d]. One projection of x has the gates, then what goes through a
// convolution and silu: the values x, the keys B and the queries C; then a step for each head. linear_attention with
// beta = step and log_decay = step * A is the recurrence of Mamba 2 (Dao and Gu, 2024). The values times D are added to
// its result, which is multiplied by silu of the gates, normalized by group, and projected. The config may put the norm
// before the gates, leave it out, and give factors of x, of each part of the projection, and of the result.
//   ssm_in, ssm_conv1d, ssm_dt, ssm_a, ssm_d, ssm_norm, ssm_out, and biases of the three matrices
Value mamba2_mixer(Builder& builder, DecoderStep& step, const Value& x, int layer);

// Llama's layers with Mamba 2 in place of attention in recurrent ones.
Values mamba2_forward(Builder& builder);

// `module` is the layer's module in folders, with {} for the layer.
void add_mamba2(WeightTable& weights, const std::string& module = "model.layers.{}.mamba.");

// The weights of a decoder with Mamba 2 by the names that folders of Bamba and Falcon H1 have.
WeightTable mamba2_decoder_weights();

}  // namespace weft::nn
