// Nomic's BERT: BERT's layers with rotary positions, a feed-forward with a gate, and no biases but those of norms.

#include "models/model.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values nomic_bert_forward(Builder& b) { return nn::encoder_forward(b, nn::gated_feed_forward); }

constexpr const char* kNomicBertDefaults = R"({
  "vocab_size": 30528, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
  "num_attention_heads": 12, "max_position_embeddings": 2048, "type_vocab_size": 2, "hidden_act": "silu",
  "layer_norm_eps": 1e-12, "rope_theta": 1000.0, "tie_word_embeddings": true
})";

// Published files call the activation of the gate by the name of the whole feed-forward. Their context is a longer one
// than the trained length, for which the frequencies would have to be scaled.
void complete_nomic_bert(ModelConfig& c) {
  if (c.hidden_act == "swiglu") c.hidden_act = "silu";
  c.merges_query_key_value = c.tie_word_embeddings = true;
}

nn::WeightTable nomic_bert_weights() {
  nn::WeightTable weights = nn::encoder_weights();
  const std::string module = "nomic_bert.", layer = module + "encoder.layers.{}.";
  nn::erase(weights, {"position_embd"});
  nn::add_gate(weights, layer + "mlp.fc12");
  nn::rename(weights, {{"token_embd", "", module + "embeddings.word_embeddings"},
                       {"token_type_embd", "", module + "embeddings.token_type_embeddings"},
                       {"token_embd_norm", "", module + "emb_ln"},
                       {"attn_qkv", "", layer + "attn.Wqkv"},
                       {"attn_output", "", layer + "attn.out_proj"},
                       {"attn_output_norm", "", layer + "norm1"},
                       {"ffn_up", "", layer + "mlp.fc11"},
                       {"ffn_down", "", layer + "mlp.fc2"},
                       {"layer_output_norm", "", layer + "norm2"}});
  return weights;
}

constexpr const char* kNomicBertSample = R"({
  "architectures": ["NomicBertModel"], "model_type": "nomic_bert", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128,
  "type_vocab_size": 2, "layer_norm_eps": 1e-12, "vocab_size": 257, "pad_token_id": 0
})";

}  // namespace
}  // namespace weft

MODEL(nomic_bert) {
  using namespace weft;
  models.add({.architectures = {"nomic_bert"},
              .gguf_architecture = "nomic-bert",
              .facts = {.key_names = {{"n_embd", "hidden_size"},
                                      {"n_inner", "intermediate_size"},
                                      {"n_layer", "num_hidden_layers"},
                                      {"n_head", "num_attention_heads"},
                                      {"n_positions", "max_position_embeddings"},
                                      {"activation_function", "hidden_act"},
                                      {"layer_norm_epsilon", "layer_norm_eps"},
                                      {"rotary_emb_base", "rope_theta"}},
                        .embedding = "nomic_bert.embeddings.word_embeddings.weight",
                        .defaults = kNomicBertDefaults,
                        .bidirectional = Bidirectional::always,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps", .has_bias = true},
                        .counts = {{&ModelConfig::token_type_count, "type_vocab_size", "", "token_types.weight"}},
                        .complete = complete_nomic_bert},
              .weights = nomic_bert_weights(),
              .forward = nomic_bert_forward,
              .head = nn::decoder_head,
              .check = nn::check_gated_decoder,
              .sample_config = kNomicBertSample});
}
