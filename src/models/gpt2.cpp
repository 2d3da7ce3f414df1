// GPT-2 and GPT-BigCode (StarCoder 1, SantaCoder): learned positions, one weight for queries, keys and values, biases
// of all linear layers, norms that subtract the mean, and a feed-forward without a gate. Folders of GPT-2 store the
// matrices of layers transposed. Most models of GPT-BigCode have one key head.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values gpt2_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::plain_feed_forward(b, x, layer); };
  return nn::pre_norm_layers(b, step, nn::embedded_tokens_and_positions(b, step), attention, feed_forward);
}

constexpr const char* kGpt2Defaults = R"({
  "vocab_size": 50257, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
  "max_position_embeddings": 1024, "hidden_act": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true
})";

constexpr const char* kBigCodeDefaults = R"({
  "vocab_size": 50257, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
  "max_position_embeddings": 1024, "hidden_act": "gelu_pytorch_tanh", "layer_norm_epsilon": 1e-5,
  "multi_query": true, "tie_word_embeddings": true
})";

// No key of the files states the biases.
void complete_gpt2(ModelConfig& c) {
  c.attention_bias = c.attention_output_bias = c.mlp_bias = c.merges_query_key_value = true;
}

void complete_big_code(ModelConfig& c) {
  complete_gpt2(c);
  if (c.format == CheckpointFormat::gguf) {
    c.has_one_key_head = c.kv_head_count == 1;
  } else {
    c.kv_head_count = c.has_one_key_head ? 1 : c.head_count;
  }
}

nn::WeightTable big_code_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string layer = "transformer.h.{}.";
  nn::erase(weights, {"ffn_gate"});
  nn::add_positions(weights, "transformer.wpe");
  nn::rename(weights, {{"token_embd", "", "transformer.wte"},
                       {"attn_norm", "", layer + "ln_1"},
                       {"attn_qkv", "", layer + "attn.c_attn"},
                       {"attn_output", "", layer + "attn.c_proj"},
                       {"ffn_norm", "", layer + "ln_2"},
                       {"ffn_up", "", layer + "mlp.c_fc"},
                       {"ffn_down", "", layer + "mlp.c_proj"},
                       {"output_norm", "", "transformer.ln_f"}});
  return weights;
}

nn::WeightTable gpt2_weights() {
  nn::WeightTable weights = big_code_weights();
  nn::transpose_in_folders(weights);
  return weights;
}

constexpr const char* kGpt2Sample = R"({
  "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128, "layer_norm_epsilon": 1e-5,
  "tie_word_embeddings": false, "vocab_size": 257, "eos_token_id": 256
})";

constexpr const char* kBigCodeSample = R"({
  "architectures": ["GPTBigCodeForCausalLM"], "model_type": "gpt_bigcode", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128, "layer_norm_epsilon": 1e-5,
  "multi_query": false, "tie_word_embeddings": false, "vocab_size": 257, "eos_token_id": 256
})";

const std::vector<KeyName>& gpt2_key_names() {
  static const std::vector<KeyName> names{{"n_embd", "hidden_size"},         {"n_layer", "num_hidden_layers"},
                                          {"n_head", "num_attention_heads"}, {"n_positions", "max_position_embeddings"},
                                          {"n_inner", "intermediate_size"},  {"activation_function", "hidden_act"}};
  return names;
}

}  // namespace
}  // namespace weft

MODEL(gpt2) {
  using namespace weft;
  models.add({.architectures = {"gpt2"},
              .facts = {.key_names = gpt2_key_names(),
                        .embedding = "transformer.wte.weight",
                        .defaults = kGpt2Defaults,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_epsilon", .has_bias = true},
                        .default_widening = 4,
                        .first_position_row = 0,
                        .switches = {{&ModelConfig::divides_attention_scale, "scale_attn_by_inverse_layer_idx"}},
                        .complete = complete_gpt2},
              .weights = gpt2_weights(),
              .forward = gpt2_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"attn_quant", 1}},
              .check = nn::check_plain_decoder,
              .sample_config = kGpt2Sample});
  models.add({.architectures = {"gpt_bigcode"},
              .gguf_architecture = "starcoder",
              .facts = {.key_names = gpt2_key_names(),
                        .embedding = "transformer.wte.weight",
                        .defaults = kBigCodeDefaults,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_epsilon", .has_bias = true},
                        .default_widening = 4,
                        .groups_heads_in_folders = true,
                        .first_position_row = 0,
                        .switches = {{&ModelConfig::has_one_key_head, "multi_query"}},
                        .complete = complete_big_code},
              .weights = big_code_weights(),
              .forward = gpt2_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"attn_quant", 1}},
              .check = nn::check_plain_decoder,
              .sample_config = kBigCodeSample});
}
