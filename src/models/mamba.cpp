// Mamba 1 and Falcon Mamba: each layer has a norm and the recurrent half, and no layer has attention. In Falcon Mamba
// what is projected to the parameters of the state is normalized.

#include "nn/mamba.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"

namespace weft {
namespace {

Values mamba_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto half = [&](const Value& x, int layer) { return nn::mamba_mixer(b, step, x, layer); };
  return nn::single_half_layers(b, step, nn::embedded_tokens(b, step.ids), half);
}

nn::WeightTable mamba_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights,
            {"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "ffn_norm"});
  const std::string layer = "backbone.layers.{}.";
  nn::rename(weights, {{"token_embd", "", "backbone.embeddings"},
                       {"attn_norm", "", layer + "norm"},
                       {"output_norm", "", "backbone.norm_f"}});
  nn::add_mamba(weights, layer + "mixer.");
  return weights;
}

void check_mamba(const ModelConfig& c) {
  nn::check_decoder(c);
  USER_CHECK(c.hidden_act == "silu" || c.hidden_act == "swish", "[{}] hidden_act must be silu, but is {}",
             c.architecture, quote(c.hidden_act));
}

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
          .weights = mamba_weights(),
          .forward = mamba_forward,
          .head = nn::decoder_head,
          .fusions_per_recurrent_layer = {{"rms_quant", 1}},
          .check = check_mamba,
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
