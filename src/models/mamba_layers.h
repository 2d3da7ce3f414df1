#pragma once

// What models have in common whose layers are a norm and a recurrent half of Mamba, without attention.

#include "base/error.h"
#include "base/text.h"
#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"

namespace weft {

using RecurrentHalf = Value (*)(Builder& builder, nn::DecoderStep& step, const Value& x, int layer);

template <RecurrentHalf mixer>
Values mamba_layers_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto half = [&](const Value& x, int layer) { return mixer(b, step, x, layer); };
  return nn::single_half_layers(b, step, nn::embedded_tokens(b, step.ids), half);
}

// The recurrent half is added by `add`, which takes the name of its module.
inline nn::WeightTable mamba_layers_weights(void (*add)(nn::WeightTable& weights, const std::string& module)) {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights,
            {"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "ffn_norm"});
  const std::string layer = "backbone.layers.{}.";
  nn::rename(weights, {{"token_embd", "", "backbone.embeddings"},
                       {"attn_norm", "", layer + "norm"},
                       {"output_norm", "", "backbone.norm_f"}});
  add(weights, layer + "mixer.");
  return weights;
}

inline void check_mamba_layers(const ModelConfig& c) {
  nn::check_decoder(c);
  USER_CHECK(c.hidden_act == "silu" || c.hidden_act == "swish", "[{}] hidden_act must be silu, but is {}",
             c.architecture, quote(c.hidden_act));
}

}  // namespace weft
