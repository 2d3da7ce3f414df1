// ELECTRA: BERT's layers over embeddings that may have a width of their own. llama.cpp has no such architecture.

#include "models/model.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values electra_forward(Builder& b) { return nn::encoder_forward(b, nn::plain_feed_forward); }

constexpr const char* kElectraDefaults = R"({
  "vocab_size": 30522, "embedding_size": 128, "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 12,
  "num_attention_heads": 4, "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu",
  "layer_norm_eps": 1e-12, "tie_word_embeddings": true
})";

void complete_electra(ModelConfig& c) {
  c.attention_bias = c.attention_output_bias = c.mlp_bias = c.tie_word_embeddings = true;
}

nn::WeightTable electra_weights() {
  nn::WeightTable weights = nn::encoder_weights();
  nn::add_embedding_projection(weights, "bert.embeddings_project", false);
  return weights;
}

constexpr const char* kElectraSample = R"({
  "architectures": ["ElectraModel"], "model_type": "electra", "hidden_act": "gelu", "embedding_size": 64,
  "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
  "max_position_embeddings": 128, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "vocab_size": 257, "pad_token_id": 0
})";

}  // namespace
}  // namespace weft

MODEL(electra) {
  using namespace weft;
  models.add({.architectures = {"electra"},
              .facts = {.embedding = "bert.embeddings.word_embeddings.weight",
                        .defaults = kElectraDefaults,
                        .bidirectional = Bidirectional::always,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps", .has_bias = true},
                        .first_position_row = 0,
                        .counts = {{&ModelConfig::token_type_count, "type_vocab_size", "", "token_types.weight"},
                                   {&ModelConfig::embedding_width, "embedding_size"}},
                        .score_layers = {{"classifier.dense", DenseActivation::gelu}, {"classifier.out_proj"}},
                        .complete = complete_electra},
              .weights = electra_weights(),
              .forward = electra_forward,
              .head = nn::decoder_head,
              .check = nn::check_plain_decoder,
              .sample_config = kElectraSample});
}
