#pragma once

// The halves of recurrent layers (io/model_config.h: RecurrentConfig), which layers without attention have in its
// place, and their weights. Each maps the norm of the residual sum, x [s0, d], to [s0, d].

#include "nn/decoder.h"
#include "nn/decoder_weights.h"

namespace weft::nn {

// LFM2's: B, C and u are thirds of a projection; C times the convolution of B times u is projected.
//   shortconv_in [3 d, d], shortconv_conv [d, taps], shortconv_out [d, d], and their biases
Value short_convolution(Builder& builder, DecoderStep& step, const Value& x, int layer);

// Qwen 3 Next's and 3.5's gated delta net: projected queries, keys and values go through a convolution and silu, then
// through linear_attention by the delta rule, with normalized queries and keys. The heads' results are normalized, and
// multiplied by silu of a projection of x.
//   ssm_qkv, ssm_gate, ssm_beta, ssm_alpha, or if the files group them ssm_qkvz and ssm_ba; ssm_conv1d, ssm_dt, ssm_a,
//   ssm_norm, ssm_out
Value gated_delta_net(Builder& builder, DecoderStep& step, const Value& x, int layer);

// Qwen 3 Next's and 3.5's layers: the gated delta net in recurrent ones, and attention with gates in others.
Values delta_net_forward(Builder& builder);

void add_short_convolution(WeightTable& weights);
void add_gated_delta_net(WeightTable& weights);

}  // namespace weft::nn
