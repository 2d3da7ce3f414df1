// Ministral 3: Llama's layers, where queries are multiplied by a factor that grows with their position.

#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

constexpr const char* kMinistral3Sample = R"({
  "architectures": ["Ministral3ForCausalLM"], "model_type": "ministral3", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": false, "head_dim": 32,
  "sliding_window": null,
  "rope_parameters": {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "original_max_position_embeddings": 8, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1},
  "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(ministral3) {
  using namespace weft;
  models.add({.architectures = {"ministral3"},
              .gguf_architecture = "mistral3",
              .facts = {.defaults = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 262144, "head_dim": 128,
                            "rope_parameters": {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0,
                            "original_max_position_embeddings": 16384, "beta_fast": 32.0, "beta_slow": 1.0,
                            "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta": 0.1}})",
                        .text_config_defaults = R"({"vocab_size": 131072, "hidden_size": 4096,
                            "intermediate_size": 14336, "num_hidden_layers": 34, "num_attention_heads": 32,
                            "num_key_value_heads": 8})",
                        .window = WindowFacts{},
                        .pairing_in_gguf = RotaryPairing::neighbours,
                        .keys = {"llama_4_scaling_beta", "attention.temperature_scale"}},
              .weights = nn::decoder_weights(),
              .forward = nn::llama_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kMinistral3Sample});
}
