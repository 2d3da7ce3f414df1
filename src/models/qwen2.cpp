// Qwen 2 and 2.5, QwQ, models distilled into them, and MiMo: Llama's layers with biases of queries, keys and values. A
// window must be asked for, and then only the later layers have it.

#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

// No key of the files states the biases.
void complete_qwen2(ModelConfig& c) { c.attention_bias = true; }

constexpr const char* kQwen2Sample = R"({
  "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": false,
  "use_sliding_window": false, "sliding_window": 32768, "max_window_layers": 2, "vocab_size": 257, "eos_token_id": 256
})";

// Of the parts for text of Qwen 2 VL and 2.5 VL.
constexpr const char* kQwen2VlDefaults = R"({
  "vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80,
  "num_attention_heads": 64, "num_key_value_heads": 8, "max_window_layers": 80, "rms_norm_eps": 1e-5,
  "rope_theta": 1000000.0
})";

}  // namespace
}  // namespace weft

MODEL(qwen2) {
  using namespace weft;
  models.add({.architectures = {"qwen2"},
              .aliases = {"mimo", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2vl"},
              .facts = {.defaults = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 32768,
                                        "sliding_window": 4096})",
                        .defaults_of_types = {{"qwen2_vl", kQwen2VlDefaults},
                                              {"qwen2_vl_text", kQwen2VlDefaults},
                                              {"qwen2_5_vl", kQwen2VlDefaults},
                                              {"qwen2_5_vl_text", kQwen2VlDefaults}},
                        .window = WindowFacts{.first_layer = 28},
                        .keys = {"rope.dimension_sections"},  // text has the same position in all of them
                        .always = {"attention_bias", "qkv_bias"},
                        .complete = complete_qwen2},
              .weights = nn::decoder_weights(),
              .forward = nn::llama_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kQwen2Sample});
}
