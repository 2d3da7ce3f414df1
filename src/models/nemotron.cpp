// Nemotron: Llama's layers with norms that subtract the mean and multiply by 1 + w, and a feed-forward without a gate.
// Half of each head is rotated.

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values nemotron_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::plain_feed_forward(b, x, layer); };
  return nn::pre_norm_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

constexpr const char* kNemotronDefaults = R"({
  "max_position_embeddings": 4096,
  "hidden_act": "relu2", "partial_rotary_factor": 0.5, "norm_eps": 1e-5
})";

nn::WeightTable nemotron_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights, {"ffn_gate"});
  nn::add_one_to_norms(weights);
  return weights;
}

constexpr const char* kNemotronSample = R"({
  "architectures": ["NemotronForCausalLM"], "model_type": "nemotron", "hidden_act": "relu2", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "head_dim": 32, "partial_rotary_factor": 0.5, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(nemotron) {
  using namespace weft;
  models.add({.architectures = {"nemotron"},
              .facts = {.defaults = kNemotronDefaults,
                        .norm = {.kind = NormKind::layer, .epsilon = "norm_eps", .has_bias = true},
                        .switches = all_biases()},
              .weights = nemotron_weights(),
              .forward = nemotron_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = nn::check_plain_decoder,
              .sample_config = kNemotronSample});
}
