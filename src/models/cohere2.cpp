// Cohere (Command R, R+, Aya) and Cohere 2 (Command R7B): both halves of a layer take the same norm, which subtracts
// the mean and has no bias. Of Cohere, the larger model has a norm for each head of query and key, with a weight for
// each. Of Cohere 2, three of four layers have a window and rotary positions; the others have neither.

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values cohere2_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  return nn::parallel_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

Values cohere_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) {
    return nn::self_attention_with_own_head_norms(b, step, x, layer);
  };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  return nn::parallel_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

constexpr const char* kCohereDefaults = R"({
  "max_position_embeddings": 8192, "rope_theta": 500000.0,
  "tie_word_embeddings": true, "layer_norm_eps": 1e-5, "logit_scale": 0.0625, "use_qk_norm": false
})";

constexpr const char* kCohere2Defaults = R"({
  "max_position_embeddings": 8192,
  "tie_word_embeddings": true, "layer_norm_eps": 1e-5, "logit_scale": 0.0625, "sliding_window": 4096
})";

nn::WeightTable cohere2_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights, {"ffn_norm"});
  return weights;
}

nn::WeightTable cohere_weights() {
  nn::WeightTable weights = cohere2_weights();
  nn::add_own_head_norms(weights);
  return weights;
}

constexpr const char* kCohereSample = R"({
  "architectures": ["CohereForCausalLM"], "model_type": "cohere", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "layer_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "logit_scale": 0.25, "use_qk_norm": true, "vocab_size": 257, "eos_token_id": 256
})";

constexpr const char* kCohere2Sample = R"({
  "architectures": ["Cohere2ForCausalLM"], "model_type": "cohere2", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "layer_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "head_dim": 32, "sliding_window": 9, "sliding_window_pattern": 4, "logit_scale": 0.25, "vocab_size": 257,
  "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(cohere2) {
  using namespace weft;
  models.add(
      {.architectures = {"cohere"},
       .gguf_architecture = "command-r",
       // The context was extended after training, which only this key states.
       .facts = {.key_names = {{"model_max_length", "max_position_embeddings"}},
                 .defaults = kCohereDefaults,
                 .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps"},
                 .pairing_in_folders = RotaryPairing::neighbours,
                 .pairing_in_gguf = RotaryPairing::neighbours,
                 .numbers = {{&ModelConfig::logit_scale, "logit_scale", "logit_scale"}},
                 .switches = {{&ModelConfig::attention_bias, "attention_bias", "", "blk.0.attn_q.bias"},
                              {&ModelConfig::attention_output_bias, "attention_bias", "", "blk.0.attn_output.bias"},
                              {&ModelConfig::has_head_norms, "use_qk_norm", "", "blk.0.attn_q_norm.weight"}}},
       .weights = cohere_weights(),
       .forward = cohere_forward,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
       .check = nn::check_gated_decoder,
       .sample_config = kCohereSample});
  models.add({.architectures = {"cohere2"},
              .facts = {.defaults = kCohere2Defaults,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps"},
                        .window = WindowFacts{.period = 4},
                        .pairing_in_folders = RotaryPairing::neighbours,
                        .pairing_in_gguf = RotaryPairing::neighbours,
                        .rotary = {.only_rotates_windows = true},
                        .numbers = {{&ModelConfig::logit_scale, "logit_scale", "logit_scale"}},
                        .switches = attention_biases(),
                        .keys = {"position_embedding_type"}},
              .weights = cohere2_weights(),
              .forward = cohere2_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kCohere2Sample});
}
