// Arcee (AFM): Llama's layers with a feed-forward without a gate.

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values arcee_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::plain_feed_forward(b, x, layer); };
  return nn::pre_norm_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

nn::WeightTable arcee_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights, {"ffn_gate"});
  return weights;
}

constexpr const char* kArceeSample = R"({
  "architectures": ["ArceeForCausalLM"], "model_type": "arcee", "hidden_act": "relu2", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(arcee) {
  using namespace weft;
  models.add({.architectures = {"arcee"},
              .facts = {.defaults = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 4096, "hidden_act": "relu2"})",
                        .pairing_in_gguf = RotaryPairing::neighbours,
                        .switches = all_biases()},
              .weights = arcee_weights(),
              .forward = arcee_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 2}, {"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = nn::check_plain_decoder,
              .sample_config = kArceeSample});
}
