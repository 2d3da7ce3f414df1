// SmolLM3: Llama's layers, every fourth of which has no rotary positions.

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

constexpr const char* kSmolLm3Sample = R"({
  "architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "no_rope_layer_interval": 4, "use_sliding_window": false, "sliding_window": null, "vocab_size": 257,
  "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(smollm3) {
  using namespace weft;
  models.add(
      {.architectures = {"smollm3"},
       .facts =
           {.defaults =
                R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 32768, "tie_word_embeddings": true, "rope_theta": 2000000.0})",
            .pairing_in_gguf = RotaryPairing::neighbours,
            .rotary = {.unrotated_period = 4},
            .switches = all_biases(),
            .keys = {"no_rope_layers", "no_rope_layer_interval"}},
       .weights = nn::decoder_weights(),
       .forward = nn::llama_forward,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
       .check = nn::check_gated_decoder,
       .sample_config = kSmolLm3Sample});
}
