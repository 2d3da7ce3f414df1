// Jina's BERT of version 2: BERT's layers with ALiBi in place of positions, to both sides, and a feed-forward with a
// gate. Folders, whose model_type is bert, have one weight for gate and up.

#include "models/model.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values jina_bert_forward(Builder& b) { return nn::encoder_forward(b, nn::gated_feed_forward); }

constexpr const char* kJinaBertDefaults = R"({
  "vocab_size": 30522, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
  "num_attention_heads": 12, "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu",
  "layer_norm_eps": 1e-12, "tie_word_embeddings": true
})";

void complete_jina_bert(ModelConfig& c) {
  c.attention_bias = c.attention_output_bias = c.mlp_bias = c.tie_word_embeddings = true;
  c.alibi_bias_max = 8;
}

std::vector<std::int64_t> gate_rows_in_gguf(const ModelConfig& c, int) {
  if (c.format != CheckpointFormat::gguf) return {};
  return {c.intermediate_size, c.hidden_size};
}
std::vector<std::int64_t> gate_and_up_rows_in_folders(const ModelConfig& c, int) {
  if (c.format != CheckpointFormat::hugging_face) return {};
  return {2 * c.intermediate_size, c.hidden_size};
}

nn::WeightTable jina_bert_weights() {
  nn::WeightTable weights = nn::encoder_weights();
  const std::string layer = "bert.encoder.layer.{}.", gates = layer + "mlp.gated_layers.weight";
  nn::erase(weights, {"position_embd", "ffn_up"});
  nn::rename(weights, {{"ffn_down", "", layer + "mlp.wo"}, {"layer_output_norm", "", layer + "mlp.layernorm"}});
  weights.push_back({"ffn_gate_up", "blk.{}.ffn_gate_up.weight", gates, gate_and_up_rows_in_folders});
  weights.push_back({"ffn_gate", "blk.{}.ffn_gate.weight", gates, gate_rows_in_gguf});
  weights.push_back({"ffn_up", "blk.{}.ffn_up.weight", gates, gate_rows_in_gguf});
  return weights;
}

constexpr const char* kJinaBertSample = R"({
  "architectures": ["JinaBertModel"], "model_type": "bert", "hidden_act": "gelu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128,
  "position_embedding_type": "alibi", "type_vocab_size": 2, "layer_norm_eps": 1e-12, "vocab_size": 257,
  "pad_token_id": 0
})";

}  // namespace
}  // namespace weft

MODEL(jina_bert) {
  using namespace weft;
  models.add({.architectures = {"jina_bert_v2"},
              .class_aliases = {{"bert", "JinaBert"}},
              .gguf_architecture = "jina-bert-v2",
              .facts = {.embedding = "bert.embeddings.word_embeddings.weight",
                        .defaults = kJinaBertDefaults,
                        .bidirectional = Bidirectional::always,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps", .has_bias = true},
                        .rotary = {.is_absent = true},
                        .counts = {{&ModelConfig::token_type_count, "type_vocab_size", "", "token_types.weight"}},
                        .keys = {"position_embedding_type"},
                        .complete = complete_jina_bert},
              .weights = jina_bert_weights(),
              .forward = jina_bert_forward,
              .head = nn::decoder_head,
              .check = nn::check_gated_decoder,
              .sample_config = kJinaBertSample});
}
