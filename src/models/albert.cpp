// ALBERT: BERT's layers, which all have the same weights, over embeddings of another width. llama.cpp has no such
// architecture.

#include "models/model.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values albert_forward(Builder& b) { return nn::encoder_forward(b, nn::plain_feed_forward); }

constexpr const char* kAlbertDefaults = R"({
  "vocab_size": 30000, "embedding_size": 128, "hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 12,
  "num_hidden_groups": 1, "inner_group_num": 1, "num_attention_heads": 64, "max_position_embeddings": 512,
  "type_vocab_size": 2, "hidden_act": "gelu_new", "layer_norm_eps": 1e-12, "tie_word_embeddings": true
})";

void complete_albert(ModelConfig& c) {
  c.attention_bias = c.attention_output_bias = c.mlp_bias = c.tie_word_embeddings = true;
}

// The names of a layer's weights have no number.
nn::WeightTable albert_weights() {
  nn::WeightTable weights = nn::encoder_weights();
  const std::string layer = "bert.encoder.albert_layer_groups.0.albert_layers.0.", attention = layer + "attention.";
  nn::rename(weights, {{"attn_q", "blk.0.attn_q", attention + "query"},
                       {"attn_k", "blk.0.attn_k", attention + "key"},
                       {"attn_v", "blk.0.attn_v", attention + "value"},
                       {"attn_output", "blk.0.attn_output", attention + "dense"},
                       {"attn_output_norm", "blk.0.attn_output_norm", attention + "LayerNorm"},
                       {"ffn_up", "blk.0.ffn_up", layer + "ffn"},
                       {"ffn_down", "blk.0.ffn_down", layer + "ffn_output"},
                       {"layer_output_norm", "blk.0.layer_output_norm", layer + "full_layer_layer_norm"}});
  nn::add_embedding_projection(weights, "bert.encoder.embedding_hidden_mapping_in", true);
  return weights;
}

constexpr const char* kAlbertSample = R"({
  "architectures": ["AlbertModel"], "model_type": "albert", "hidden_act": "gelu_new", "embedding_size": 64,
  "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
  "max_position_embeddings": 128, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "vocab_size": 257, "pad_token_id": 0
})";

}  // namespace
}  // namespace weft

MODEL(albert) {
  using namespace weft;
  models.add({.architectures = {"albert"},
              .facts = {.embedding = "bert.embeddings.word_embeddings.weight",
                        .defaults = kAlbertDefaults,
                        .bidirectional = Bidirectional::always,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps", .has_bias = true},
                        .first_position_row = 0,
                        .counts = {{&ModelConfig::token_type_count, "type_vocab_size", "", "token_types.weight"},
                                   {&ModelConfig::embedding_width, "embedding_size"}},
                        .score_layers = {{"bert.pooler", DenseActivation::tanh}, {"classifier"}},
                        .complete = complete_albert},
              .weights = albert_weights(),
              .forward = albert_forward,
              .head = nn::decoder_head,
              .check = nn::check_plain_decoder,
              .sample_config = kAlbertSample});
}
