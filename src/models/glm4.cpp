// GLM-4: Llama's layers with biases of queries, keys and values. Half of each head is rotated, each element with its
// neighbour. GLM-4-0414 has norms after each half of a layer, too.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values glm4_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  return nn::sandwich_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

constexpr const char* kGlmDefaults = R"({
  "max_position_embeddings": 131072,
  "head_dim": 128, "attention_bias": true, "partial_rotary_factor": 0.5, "rms_norm_eps": 1.5625e-07
})";

nn::WeightTable glm_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::merge_gate_and_up(weights);
  return weights;
}

nn::WeightTable glm4_weights() {
  nn::WeightTable weights = glm_weights();
  nn::add_post_norms(weights);
  nn::rename(weights, {{"post_attention_norm", "", "model.layers.{}.post_self_attn_layernorm"},
                       {"post_ffw_norm", "", "model.layers.{}.post_mlp_layernorm"}});
  return weights;
}

constexpr const char* kGlmSample = R"({
  "architectures": ["GlmForCausalLM"], "model_type": "glm", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "head_dim": 32, "partial_rotary_factor": 0.5, "attention_bias": true, "vocab_size": 257, "eos_token_id": 256
})";

constexpr const char* kGlm4Sample = R"({
  "architectures": ["Glm4ForCausalLM"], "model_type": "glm4", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "head_dim": 32, "partial_rotary_factor": 0.5, "attention_bias": true, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(glm4) {
  using namespace weft;
  models.add({.architectures = {"glm"},
              .gguf_architecture = "chatglm",
              .facts = {.defaults = kGlmDefaults,
                        .pairing_in_folders = RotaryPairing::neighbours,
                        .pairing_in_gguf = RotaryPairing::neighbours,
                        .switches = {{&ModelConfig::attention_bias, "attention_bias", "", "blk.0.attn_q.bias"}}},
              .weights = glm_weights(),
              .forward = nn::llama_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kGlmSample});
  models.add({.architectures = {"glm4"},
              .facts = {.defaults = kGlmDefaults,
                        .pairing_in_folders = RotaryPairing::neighbours,
                        .pairing_in_gguf = RotaryPairing::neighbours,
                        .switches = {{&ModelConfig::attention_bias, "attention_bias", "", "blk.0.attn_q.bias"}}},
              .weights = glm4_weights(),
              .forward = glm4_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kGlm4Sample});
}
