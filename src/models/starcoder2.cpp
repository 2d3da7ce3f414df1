// StarCoder2: Llama's layers with norms that subtract the mean, biases of all linear layers, and a feed-forward without
// a gate.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values starcoder2_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::plain_feed_forward(b, x, layer); };
  return nn::pre_norm_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

constexpr const char* kStarcoder2Defaults = R"({
  "max_position_embeddings": 4096,
  "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": true, "use_bias": true, "norm_epsilon": 1e-5
})";

nn::WeightTable starcoder2_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights, {"ffn_gate"});
  nn::rename(weights, {{"ffn_up", "", "model.layers.{}.mlp.c_fc"}, {"ffn_down", "", "model.layers.{}.mlp.c_proj"}});
  return weights;
}

constexpr const char* kStarcoder2Sample = R"({
  "architectures": ["Starcoder2ForCausalLM"], "model_type": "starcoder2", "hidden_act": "gelu_pytorch_tanh",
  "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 128, "norm_epsilon": 1e-5, "rope_theta": 10000.0,
  "tie_word_embeddings": false, "use_bias": true, "sliding_window": 20, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(starcoder2) {
  using namespace weft;
  models.add({.architectures = {"starcoder2"},
              .facts = {.defaults = kStarcoder2Defaults,
                        .norm = {.kind = NormKind::layer, .epsilon = "norm_epsilon", .has_bias = true},
                        .window = WindowFacts{},
                        .switches = {{&ModelConfig::attention_bias, "use_bias", "", "blk.0.attn_q.bias"},
                                     {&ModelConfig::attention_output_bias, "use_bias", "", "blk.0.attn_output.bias"},
                                     {&ModelConfig::mlp_bias, "use_bias", "", "blk.0.ffn_up.bias"}}},
              .weights = starcoder2_weights(),
              .forward = starcoder2_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = nn::check_plain_decoder,
              .sample_config = kStarcoder2Sample});
}
