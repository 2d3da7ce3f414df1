// OLMo 2 and 3. A half of a layer takes the residual sum itself, and its result is normalized. Queries and keys are
// normalized over all their heads. OLMo 3 has a window in three of four layers, whose positions are not scaled. GGUF
// files of both have one architecture.

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values olmo2_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) {
    return nn::self_attention_with_row_norms(b, step, x, layer);
  };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  return nn::post_norm_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

nn::WeightTable olmo2_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights, {"attn_norm", "ffn_norm"});
  nn::add_post_norms(weights);
  nn::add_row_norms(weights);
  return weights;
}

constexpr const char* kOlmo2Sample = R"({
  "architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "vocab_size": 257, "eos_token_id": 256
})";

constexpr const char* kOlmo3Sample = R"({
  "architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": false,
  "sliding_window": 9, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
  "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(olmo2) {
  using namespace weft;
  const RotaryFacts rotary{.has_sliding_positions = true};
  models.add({.architectures = {"olmo2"},
              .facts = {.defaults = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 2048})",
                        .window = WindowFacts{.period = 4},
                        .rotary = rotary,
                        .switches = attention_biases(),
                        .keys = {"rope.freq_base_swa"}},
              .weights = olmo2_weights(),
              .forward = olmo2_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kOlmo2Sample});
  models.add(
      {.architectures = {"olmo3"},
       .gguf_architecture = "olmo2",
       .facts =
           {.defaults =
                R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 2048, "sliding_window": 4096, "rope_theta": 500000.0})",
            .window = WindowFacts{.period = 4},
            .rotary = rotary,
            .switches = attention_biases(),
            .keys = {"rope.freq_base_swa"}},
       .weights = olmo2_weights(),
       .forward = olmo2_forward,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
       .check = nn::check_gated_decoder,
       .sample_config = kOlmo3Sample});
}
