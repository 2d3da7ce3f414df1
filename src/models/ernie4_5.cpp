// Ernie 4.5, dense: Llama's layers, where each element of a head is rotated with its neighbour.

#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

constexpr const char* kErnieSample = R"({
  "architectures": ["Ernie4_5ForCausalLM"], "model_type": "ernie4_5", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "head_dim": 32, "use_bias": false, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(ernie4_5) {
  using namespace weft;
  models.add(
      {.architectures = {"ernie4_5"},
       .facts =
           {.defaults =
                R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 131072, "head_dim": 128, "tie_word_embeddings": true, "rope_theta": 500000.0})",
            .pairing_in_folders = RotaryPairing::neighbours,
            .pairing_in_gguf = RotaryPairing::neighbours,
            .switches = {{&ModelConfig::attention_bias, "use_bias", "", "blk.0.attn_q.bias"},
                         {&ModelConfig::attention_output_bias, "use_bias", "", "blk.0.attn_output.bias"},
                         {&ModelConfig::mlp_bias, "use_bias", "", "blk.0.ffn_up.bias"}}},
       .weights = nn::decoder_weights(),
       .forward = nn::llama_forward,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
       .check = nn::check_gated_decoder,
       .sample_config = kErnieSample});
}
