// Mamba 2 alone: each layer has a norm and the recurrent half, and no layer has attention.

#include "nn/mamba2.h"

#include "models/mamba_layers.h"

namespace weft {
namespace {

// A context has no limit in the files; this one is that of GGUF files. Attention and the feed-forward, which no layer
// has, have the least widths.
constexpr const char* kMamba2Defaults = R"({
  "vocab_size": 32768, "hidden_size": 4096, "num_hidden_layers": 64, "intermediate_size": 1, "num_attention_heads": 1,
  "max_position_embeddings": 1048576, "layer_norm_epsilon": 1e-5, "mamba_n_heads": 128, "mamba_d_head": 64,
  "mamba_d_state": 128, "mamba_n_groups": 8, "mamba_d_conv": 4
})";

constexpr const char* kMamba2Sample = R"({
  "architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2", "hidden_act": "silu", "hidden_size": 64,
  "num_hidden_layers": 2, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": false, "conv_kernel": 4, "head_dim": 32,
  "num_heads": 4, "n_groups": 2, "state_size": 16, "max_position_embeddings": 128, "vocab_size": 257,
  "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(mamba2) {
  using namespace weft;
  models.add({.architectures = {"mamba2"},
              .facts = {.key_names = {{"conv_kernel", "mamba_d_conv"},
                                      {"use_conv_bias", "mamba_conv_bias"},
                                      {"use_bias", "mamba_proj_bias"},
                                      {"n_groups", "mamba_n_groups"},
                                      {"num_heads", "mamba_n_heads"},
                                      {"head_dim", "mamba_d_head"},
                                      {"state_size", "mamba_d_state"}},
                        .embedding = "backbone.embeddings.weight",
                        .defaults = kMamba2Defaults,
                        .norm = {.epsilon = "layer_norm_epsilon"},
                        .halves = HalfFacts{.words = "", .letters = ""},
                        .recurrent = RecurrentFacts{.kind = RecurrentKind::mamba2}},
              .weights = mamba_layers_weights(nn::add_mamba2),
              .forward = mamba_layers_forward<nn::mamba2_mixer>,
              .head = nn::decoder_head,
              .fusions_per_recurrent_layer = {{"rms_quant", 1}},
              .check = check_mamba_layers,
              .sample_config = kMamba2Sample});
}
