// Phi 1, 1.5 and 2: both halves of a layer take the same norm, which subtracts the mean. All linear layers have biases,
// the head, too, and the feed-forward has no gate.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values phi_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::plain_feed_forward(b, x, layer); };
  return nn::parallel_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

constexpr const char* kPhiDefaults = R"({
  "max_position_embeddings": 2048,
  "hidden_act": "gelu_new", "partial_rotary_factor": 0.5, "layer_norm_eps": 1e-5
})";

// No key of the files states the biases.
void complete_phi(ModelConfig& c) { c.attention_bias = c.attention_output_bias = c.mlp_bias = c.head_bias = true; }

nn::WeightTable phi_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights, {"ffn_gate", "ffn_norm"});
  nn::rename(weights, {{"attn_output", "", "model.layers.{}.self_attn.dense"},
                       {"ffn_up", "", "model.layers.{}.mlp.fc1"},
                       {"ffn_down", "", "model.layers.{}.mlp.fc2"},
                       {"output_norm", "", "model.final_layernorm"}});
  return weights;
}

constexpr const char* kPhiSample = R"({
  "architectures": ["PhiForCausalLM"], "model_type": "phi", "hidden_act": "gelu_new", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "layer_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "partial_rotary_factor": 0.5, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(phi) {
  using namespace weft;
  models.add({.architectures = {"phi"},
              .gguf_architecture = "phi2",
              .facts = {.defaults = kPhiDefaults,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps", .has_bias = true},
                        .complete = complete_phi},
              .weights = phi_weights(),
              .forward = phi_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = nn::check_plain_decoder,
              .sample_config = kPhiSample});
}
