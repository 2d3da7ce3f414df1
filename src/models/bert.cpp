// BERT and RoBERTa, also XLM-RoBERTa: encoders with learned positions and norms after each sum. RoBERTa's table of
// positions begins with two rows that no text has; its GGUF files have the architecture bert, and no such rows.

#include "models/model.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values bert_forward(Builder& b) { return nn::encoder_forward(b, nn::plain_feed_forward); }

constexpr const char* kBertDefaults = R"({
  "vocab_size": 30522, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
  "num_attention_heads": 12, "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu",
  "layer_norm_eps": 1e-12, "tie_word_embeddings": true
})";

constexpr const char* kRobertaDefaults = R"({
  "vocab_size": 50265, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
  "num_attention_heads": 12, "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu",
  "layer_norm_eps": 1e-12, "tie_word_embeddings": true
})";

void complete_bert(ModelConfig& c) {
  c.attention_bias = c.attention_output_bias = c.mlp_bias = true;
  c.tie_word_embeddings = true;
}

// The tables of GGUF files have no rows before the first position.
void complete_roberta(ModelConfig& c) {
  complete_bert(c);
  if (c.format == CheckpointFormat::hugging_face) return nn::begin_positions_after_padding(c);
  c.first_position_row = 0;
  c.position_rows = c.context_length;
}

constexpr const char* kBertSample = R"({
  "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128,
  "type_vocab_size": 2, "layer_norm_eps": 1e-12, "vocab_size": 257, "pad_token_id": 0
})";

constexpr const char* kRobertaSample = R"({
  "architectures": ["RobertaModel"], "model_type": "roberta", "hidden_act": "gelu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 130,
  "type_vocab_size": 1, "layer_norm_eps": 1e-5, "vocab_size": 257, "pad_token_id": 1
})";

ModelDefinition bert_definition() {
  return {.architectures = {"bert"},
          .facts = {.embedding = "bert.embeddings.word_embeddings.weight",
                    .defaults = kBertDefaults,
                    .bidirectional = Bidirectional::always,
                    .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps", .has_bias = true},
                    .first_position_row = 0,
                    .counts = {{&ModelConfig::token_type_count, "type_vocab_size", "", "token_types.weight"}},
                    .score_layers = {{"bert.pooler.dense", DenseActivation::tanh}, {"classifier"}},
                    .complete = complete_bert},
          .weights = nn::encoder_weights(),
          .forward = bert_forward,
          .head = nn::decoder_head,
          .check = nn::check_plain_decoder,
          .sample_config = kBertSample};
}

}  // namespace
}  // namespace weft

MODEL(bert) {
  using namespace weft;
  models.add(bert_definition());
  ModelDefinition roberta = bert_definition();
  roberta.architectures = {"roberta"};
  roberta.aliases = {"xlm-roberta", "camembert"};
  roberta.gguf_architecture = "bert";
  roberta.facts.defaults = kRobertaDefaults;
  roberta.facts.first_position_row = 2;
  roberta.facts.score_layers = {{"classifier.dense", DenseActivation::tanh}, {"classifier.out_proj"}};
  roberta.facts.complete = complete_roberta;
  roberta.sample_config = kRobertaSample;
  models.add(std::move(roberta));
}
