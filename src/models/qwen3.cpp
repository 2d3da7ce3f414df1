// Qwen 3, dense. It has Llama's layers with two differences: each head of query and key is normalized before its
// rotation, and the width of heads is configured separately.

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

nn::WeightTable qwen3_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_head_norms(weights);
  return weights;
}

constexpr const char* kQwen3Sample = R"({
  "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 32, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
  "tie_word_embeddings": false, "attention_bias": false, "use_sliding_window": false, "sliding_window": null,
  "vocab_size": 257, "eos_token_id": 256
})";

// Of the part for text of Qwen 3 VL.
constexpr const char* kQwen3VlDefaults = R"({
  "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
  "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 128000, "rope_theta": 500000.0
})";

}  // namespace
}  // namespace weft

MODEL(qwen3) {
  using namespace weft;
  models.add({.architectures = {"qwen3"},
              .aliases = {"qwen3_vl", "qwen3_vl_text", "qwen3vl"},
              .facts = {.defaults = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 32768, "head_dim": 128,
                                 "sliding_window": 4096})",
                        .defaults_of_types = {{"qwen3_vl", kQwen3VlDefaults}, {"qwen3_vl_text", kQwen3VlDefaults}},
                        .window = WindowFacts{.first_layer = 28},
                        .switches = attention_biases(),
                        .keys = {"rope.dimension_sections", "n_deepstack_layers"},  // of images
                        .always = {"use_qk_norm", "qk_norm", "qk_layernorm"}},
              .weights = qwen3_weights(),
              .forward = nn::llama_forward_with_head_norms,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"qk_norm_rope_kvcache", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kQwen3Sample});
}
