// EXAONE 4: a half of a layer takes the residual sum itself, and its result is normalized. Heads of queries and keys
// are normalized. In models with a window, layers without it have no rotary positions.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values exaone4_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) {
    return nn::self_attention_with_head_norms(b, step, x, layer);
  };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  return nn::post_norm_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

nn::WeightTable exaone4_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights, {"attn_norm", "ffn_norm"});
  nn::add_post_norms(weights);
  nn::add_head_norms(weights);
  return weights;
}

constexpr const char* kExaone4Sample = R"({
  "architectures": ["Exaone4ForCausalLM"], "model_type": "exaone4", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "head_dim": 32, "sliding_window": 9, "sliding_window_pattern": "LLLG", "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(exaone4) {
  using namespace weft;
  models.add(
      {.architectures = {"exaone4"},
       .facts = {.defaults = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 2048, "sliding_window": 4096})",
                 .window = WindowFacts{.period = 4},
                 .rotary = {.only_rotates_windows = true}},
       .weights = exaone4_weights(),
       .forward = exaone4_forward,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"act_quant", 1}, {"attn_quant", 1}, {"qk_norm_rope_kvcache", 1}},
       .check = nn::check_gated_decoder,
       .sample_config = kExaone4Sample});
}
