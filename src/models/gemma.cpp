// Gemma 1. It has Llama's layers with these differences: embeddings are scaled by the square root of their width, norms
// multiply by 1 + w in f32, GELU gates the feed-forward, and the width of heads is configured separately.

#include "base/error.h"
#include "base/text.h"
#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "ops/gelu_and_mul.h"
#include "ops/gelu_tanh_and_mul.h"

namespace weft {
namespace {

constexpr const char* kTanh = "gelu_pytorch_tanh";
constexpr const char* kExact = "gelu";
constexpr const char* kGemmaDefaults =
    R"({"hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": true, "head_dim": 256, "rms_norm_eps": 1e-6,
         "max_position_embeddings": 8192})";

Values gemma_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto gate = b.facts.config.hidden_activation == kExact ? gelu_and_mul : gelu_tanh_and_mul;
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, gate, layer); };
  const Value x = nn::times_root_of_width(b, nn::embedded_tokens(b, step.ids));
  return nn::pre_norm_layers(b, step, x, attention, feed_forward);
}

// The first checkpoints have hidden_act "gelu", but the models were trained with the tanh approximation. So "gelu" in
// hidden_act means the approximation, as in vLLM and transformers; only hidden_activation can select the exact
// function.
void check_gemma(const ModelConfig& c) {
  nn::check_decoder(c);
  const auto check = [](const char* key, const std::string& word) {
    USER_CHECK(word == kTanh || word == kExact, "[gemma] {} must be {} or {}, but is {}", key, kTanh, kExact,
               quote(word));
  };
  if (c.hidden_activation.empty()) {
    check("hidden_act", c.hidden_act);
  } else {
    check("hidden_activation", c.hidden_activation);
  }
}

nn::WeightTable gemma_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_one_to_norms(weights);
  return weights;
}

constexpr const char* kGemmaSample = R"({
  "architectures": ["GemmaForCausalLM"], "model_type": "gemma", "hidden_act": "gelu_pytorch_tanh",
  "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": 128,
  "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(gemma) {
  using namespace weft;
  models.add({.architectures = {"gemma"},
              .facts = {.defaults = kGemmaDefaults, .switches = attention_biases(), .keys = {"hidden_activation"}},
              .weights = gemma_weights(),
              .forward = gemma_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = check_gemma,
              .sample_config = kGemmaSample});
}
