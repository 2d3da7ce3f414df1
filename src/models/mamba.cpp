// Mamba 1 and Falcon Mamba: each layer has a norm and the recurrent half, and no layer has attention. In Falcon Mamba
// what is projected to the parameters of the state is normalized.

#include "nn/mamba.h"

#include <utility>

#include "models/mamba_layers.h"

namespace weft {
namespace {

// A context has no limit in the files; this one is that of GGUF files. Attention and the feed-forward, which no layer
// has, have some widths.
constexpr const char* kMambaDefaults = R"({
  "vocab_size": 50280, "hidden_size": 768, "num_hidden_layers": 32, "num_attention_heads": 1,
  "max_position_embeddings": 1048576, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true, "mamba_d_state": 16,
  "mamba_d_conv": 4, "mamba_expand": 2
})";

ModelDefinition mamba_layers(const char* architecture, const char* model_class, RecurrentFacts recurrent) {
  recurrent.kind = RecurrentKind::mamba;
  return {.architectures = {architecture},
          .gguf_architecture = "mamba",
          .facts = {.key_names = {{"conv_kernel", "mamba_d_conv"},
                                  {"use_conv_bias", "mamba_conv_bias"},
                                  {"use_bias", "mamba_proj_bias"},
                                  {"state_size", "mamba_d_state"},
                                  {"expand", "mamba_expand"},
                                  {"time_step_rank", "mamba_dt_rank"},
                                  {"intermediate_size", "mamba_d_ssm"}},
                    .embedding = "backbone.embeddings.weight",
                    .defaults = kMambaDefaults,
                    .norm = {.epsilon = "layer_norm_epsilon"},
                    .default_widening = 2,
                    .halves = HalfFacts{.words = "", .letters = ""},
                    .recurrent = recurrent,
                    // Names of hidden_size, num_hidden_layers and the width in the first files, and what they state of
                    // the program that wrote them.
                    .keys = {"d_inner", "d_model", "n_layer", "ssm_cfg", "fused_add_norm", "rms_norm",
                             "pad_vocab_size_multiple", "time_step_init_scheme", "time_step_scale", "use_mambapy",
                             "use_associative_scan", "use_falcon_mambapy"}},
          .weights = mamba_layers_weights(nn::add_mamba),
          .forward = mamba_layers_forward<nn::mamba_mixer>,
          .head = nn::decoder_head,
          .fusions_per_recurrent_layer = {{"rms_quant", 1}},
          .check = check_mamba_layers,
          .sample_config = R"({"architectures": [")" + std::string(model_class) + R"("], "model_type": ")" +
                           architecture + R"(", "hidden_act": "silu", "hidden_size": 64, "num_hidden_layers": 2,
  "layer_norm_epsilon": 1e-5, "tie_word_embeddings": false, "conv_kernel": 4, "state_size": 16, "time_step_rank": 32,
  "intermediate_size": 128, "max_position_embeddings": 128, "vocab_size": 257, "eos_token_id": 256})"};
}

}  // namespace
}  // namespace weft

MODEL(mamba) {
  using namespace weft;
  ModelDefinition first = mamba_layers("mamba", "MambaForCausalLM", {});
  first.architecture_of_folder = [](const ModelConfig& c) {
    return c.recurrent->normalizes_parts ? "falcon_mamba" : "";
  };
  models.add(std::move(first));
  models.add(mamba_layers("falcon_mamba", "FalconMambaForCausalLM",
                          {.normalizes_parts = true, .parts_epsilon = "mixer_rms_eps"}));
}
