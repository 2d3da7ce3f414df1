// Phi 3, 3.5, 4 and 4-mini: Llama's layers. Checkpoints have one weight for query, key and value, and one for gate and
// up.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"

namespace weft {
namespace {

Values phi3_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  return nn::pre_norm_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

void check_phi3(const ModelConfig& c) {
  nn::check_decoder(c);
  nn::check_gated_activation(c);
}

nn::WeightTable phi3_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::merge_query_key_value(weights);
  nn::merge_gate_and_up(weights);
  return weights;
}

constexpr const char* kPhi3Sample = R"({
  "architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "original_max_position_embeddings": 128, "partial_rotary_factor": 0.75, "sliding_window": 20, "vocab_size": 257,
  "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(phi3) {
  using namespace weft;
  models.add({.architectures = {"phi3"},
              .facts = {.window = WindowFacts{}},
              .weights = phi3_weights(),
              .forward = phi3_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = check_phi3,
              .sample_config = kPhi3Sample});
}
