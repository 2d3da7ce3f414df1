// Bamba: most layers have Mamba 2 in place of attention; attention rotates half of each head.

#include "models/model.h"
#include "nn/decoder.h"
#include "nn/llama.h"
#include "nn/mamba2.h"

namespace weft {
namespace {

// transformers rotates half of a head unless rope_parameters state another part.
constexpr const char* kBambaDefaults = R"({
  "vocab_size": 128000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
  "num_attention_heads": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "max_position_embeddings": 262144,
  "partial_rotary_factor": 0.5, "attn_layer_indices": [], "mamba_d_conv": 4, "mamba_d_state": 256, "mamba_expand": 2,
  "mamba_n_groups": 1, "mamba_n_heads": 128
})";

constexpr const char* kBambaSample = R"({
  "architectures": ["BambaForCausalLM"], "model_type": "bamba", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "attn_layer_indices": [1], "mamba_d_conv": 4, "mamba_d_head": "auto", "mamba_d_state": 16, "mamba_expand": 2,
  "mamba_n_groups": 2, "mamba_n_heads": 4, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(bamba) {
  using namespace weft;
  models.add({.architectures = {"bamba"},
              .facts = {.defaults = kBambaDefaults,
                        .recurrent = RecurrentFacts{.kind = RecurrentKind::mamba2,
                                                    .words = {"mamba", "linear_attention"},
                                                    .word_of_others = "attention",
                                                    .attending = "attn_layer_indices"},
                        .switches = {{&ModelConfig::attention_bias, "attention_bias"},
                                     {&ModelConfig::attention_output_bias, "attention_bias"},
                                     {&ModelConfig::mlp_bias, "mlp_bias", "", "blk.0.ffn_up.bias"}}},
              .weights = nn::mamba2_decoder_weights(),
              .forward = nn::mamba2_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
              .fusions_per_recurrent_layer = {{"rms_quant", 2}, {"act_quant", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kBambaSample});
}
