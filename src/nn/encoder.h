#pragma once

// The parts of encoders such as BERT: models whose tokens attend to later ones, too.

#include "nn/decoder.h"
#include "nn/decoder_weights.h"

namespace weft::nn {

// The weights of BERT's encoder in GGUF's and transformers' names: those of a decoder with a feed-forward without a
// gate and with biases of linear layers, and in place of a decoder's norms token_embd_norm, attn_output_norm and
// layer_output_norm. There is no head.
WeightTable encoder_weights();

// Learned positions begin in the row after that of the padding, as in RoBERTa, and max_position_embeddings counts the
// rows before it, too.
void begin_positions_after_padding(ModelConfig& config);

// Adds the gate of the feed-forward, by its name in folders without ".weight".
void add_gate(WeightTable& weights, const std::string& name);
// Adds the norm of embeddings, token_embd_norm, by its name in folders.
void add_embedding_norm(WeightTable& weights, const std::string& name);

// Embeddings may be of another width than the layers (ModelConfig::embedding_width). Adds the projection between the
// two, token_embd_proj, by its name in folders without ".weight"; models with one width have it if `is_always`.
void add_embedding_projection(WeightTable& weights, const std::string& name, bool is_always);

// The embeddings of tokens, plus the rows of their types and of their positions if the model has tables of these. The
// sum is normalized by token_embd_norm, and projected if the model has token_embd_proj.
Value encoder_embeddings(Builder& builder, const DecoderStep& step);

// Applies all layers to x [s0, d]. A half takes the normalized sum, and the sum of both is normalized again by the norm
// of the half.
struct NormsOfSums {
  std::string attention = "attn_output_norm", feed_forward = "layer_output_norm";
};
Values norm_of_sum_layers(Builder& builder, DecoderStep& step, Value x, const LayerHalf& attention,
                          const LayerHalf& feed_forward, const NormsOfSums& norms = {});

// The forward graph of BERT: these layers, of self_attention and this feed-forward.
using LayerFeedForward = Value (*)(Builder& builder, const Value& x, int layer);
Values encoder_forward(Builder& builder, LayerFeedForward feed_forward_of_layer);

}  // namespace weft::nn
