// Jais 2: Llama's layers with norms that subtract the mean, biases of all linear layers, and a feed-forward without a
// gate.

#include "models/llama_layers.h"
#include "nn/attention.h"
#include "nn/feed_forward.h"

namespace weft {
namespace {

Values jais2_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::plain_feed_forward(b, x, layer); };
  return nn::pre_norm_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

nn::WeightTable jais2_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights, {"ffn_gate"});
  return weights;
}

constexpr const char* kJais2Defaults = R"({
  "layer_norm_eps": 1e-5, "max_position_embeddings": 8192, "hidden_act": "relu2", "attention_bias": true,
  "mlp_bias": true
})";

constexpr const char* kJais2Sample = R"({
  "architectures": ["Jais2ForCausalLM"], "model_type": "jais2", "hidden_act": "relu2", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "layer_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(jais2) {
  using namespace weft;
  ModelDefinition model =
      llama_layers("jais2",
                   {.defaults = kJais2Defaults,
                    .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps", .has_bias = true},
                    .switches = all_biases()},
                   kJais2Sample, jais2_weights());
  model.forward = jais2_forward;
  model.fusions_per_layer = {{"attn_quant", 1}, {"rope_kvcache", 1}};
  model.check = nn::check_plain_decoder;
  models.add(std::move(model));
}
