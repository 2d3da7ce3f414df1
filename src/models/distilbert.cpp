// DistilBERT: BERT's layers without token types, with names of its own. llama.cpp has no such architecture.

#include "models/model.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values distilbert_forward(Builder& b) { return nn::encoder_forward(b, nn::plain_feed_forward); }

// The files have no key of the norms' epsilon.
constexpr const char* kDistilbertDefaults = R"({
  "vocab_size": 30522, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 6,
  "num_attention_heads": 12, "max_position_embeddings": 512, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
  "tie_word_embeddings": true
})";

void complete_distilbert(ModelConfig& c) {
  c.attention_bias = c.attention_output_bias = c.mlp_bias = c.tie_word_embeddings = true;
}

nn::WeightTable distilbert_weights() {
  nn::WeightTable weights = nn::encoder_weights();
  const std::string module = "distilbert.embeddings.", layer = "distilbert.transformer.layer.{}.",
                    attention = layer + "attention.";
  nn::erase(weights, {"token_type_embd"});
  nn::rename(weights, {{"token_embd", "", module + "word_embeddings"},
                       {"position_embd", "", module + "position_embeddings"},
                       {"token_embd_norm", "", module + "LayerNorm"},
                       {"attn_q", "", attention + "q_lin"},
                       {"attn_k", "", attention + "k_lin"},
                       {"attn_v", "", attention + "v_lin"},
                       {"attn_output", "", attention + "out_lin"},
                       {"attn_output_norm", "", layer + "sa_layer_norm"},
                       {"ffn_up", "", layer + "ffn.lin1"},
                       {"ffn_down", "", layer + "ffn.lin2"},
                       {"layer_output_norm", "", layer + "output_layer_norm"}});
  return weights;
}

constexpr const char* kDistilbertSample = R"({
  "architectures": ["DistilBertModel"], "model_type": "distilbert", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128, "vocab_size": 257, "pad_token_id": 0
})";

}  // namespace
}  // namespace weft

MODEL(distilbert) {
  using namespace weft;
  models.add({.architectures = {"distilbert"},
              .facts = {.key_names = {{"dim", "hidden_size"},
                                      {"hidden_dim", "intermediate_size"},
                                      {"n_layers", "num_hidden_layers"},
                                      {"n_heads", "num_attention_heads"},
                                      {"activation", "hidden_act"}},
                        .embedding = "distilbert.embeddings.word_embeddings.weight",
                        .defaults = kDistilbertDefaults,
                        .bidirectional = Bidirectional::always,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps", .has_bias = true},
                        .first_position_row = 0,
                        .score_layers = {{"pre_classifier", DenseActivation::relu}, {"classifier"}},
                        .complete = complete_distilbert},
              .weights = distilbert_weights(),
              .forward = distilbert_forward,
              .head = nn::decoder_head,
              .check = nn::check_plain_decoder,
              .sample_config = kDistilbertSample});
}
