// Nemotron H, Nemotron Nano 2 and Nemotron 3: each layer has one half, which is Mamba 2, attention without positions, a
// feed-forward without a gate, or a mixture of experts without gates, which may read and write latents.

#include <algorithm>

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"
#include "nn/mamba2.h"

namespace weft {
namespace {

Values nemotron_h_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto half = [&](const Value& x, int layer) {
    const ModelConfig& c = b.facts.config;
    if (c.recurs(layer)) return nn::mamba2_mixer(b, step, x, layer);
    return c.attends(layer) ? nn::self_attention(b, step, x, layer) : nn::plain_feed_forward(b, x, layer);
  };
  return nn::single_half_layers(b, step, nn::embedded_tokens(b, step.ids), half);
}

// The files state experts also where no layer has them.
void complete_nemotron_h(ModelConfig& c) {
  c.is_rotated.assign(static_cast<std::size_t>(c.layer_count), false);
  if (std::count(c.halves.begin(), c.halves.end(), HalfKind::experts) > 0) return;
  c.experts.reset();
  c.expert_count = 0;
}

nn::WeightTable nemotron_h_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string layer = "model.layers.{}.", mixer = layer + "mixer.";
  nn::erase(weights, {"ffn_gate", "ffn_norm"});
  nn::rename(weights, {{"token_embd", "", "model.embeddings"},
                       {"attn_norm", "", layer + "norm"},
                       {"attn_q", "", mixer + "q_proj"},
                       {"attn_k", "", mixer + "k_proj"},
                       {"attn_v", "", mixer + "v_proj"},
                       {"attn_output", "", mixer + "o_proj"},
                       {"ffn_up", "", mixer + "up_proj"},
                       {"ffn_down", "", mixer + "down_proj"},
                       {"output_norm", "", "model.norm_f"}});
  nn::add_mamba2(weights, mixer);
  nn::add_experts(weights, {.module = "mixer"});
  nn::add_expert_bias(weights, "mixer.gate.e_score_correction_bias");
  nn::add_expert_latents(weights, "mixer");
  nn::add_shared_expert(weights, "mixer.shared_experts");
  nn::erase(weights, {"ffn_gate_exps", "ffn_gate_shexp"});
  constexpr std::string_view kModel = "model.";
  for (ModelWeight& weight : weights)
    if (weight.hugging_face.starts_with(kModel)) weight.hugging_face.replace(0, kModel.size(), "backbone.");
  return weights;
}

constexpr double kLeastStep = 0.001;  // time_step_min of transformers' config

constexpr const char* kNemotronHDefaults = R"({
  "vocab_size": 131072, "num_hidden_layers": 4, "hidden_size": 4096, "intermediate_size": 21504, "num_attention_heads": 32,
  "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 4096, "hidden_act": "relu2",
  "layer_norm_epsilon": 1e-5, "mamba_d_state": 128, "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_n_groups": 8,
  "mamba_d_conv": 4, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 7688,
  "moe_shared_expert_intermediate_size": 7688, "norm_topk_prob": true
})";

constexpr const char* kNemotronHSample = R"({
  "architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 32, "max_position_embeddings": 128, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": false,
  "conv_kernel": 4, "mamba_head_dim": 32, "mamba_num_heads": 4, "n_groups": 2, "ssm_state_size": 16,
  "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
  "moe_shared_expert_intermediate_size": 64, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(nemotron_h) {
  using namespace weft;
  models.add({.architectures = {"nemotron_h"},
              .aliases = {"nemotron_h_moe"},
              .facts = {.key_names = {{"mlp_hidden_act", "hidden_act"},
                                      {"attention_head_dim", "head_dim"},
                                      {"conv_kernel", "mamba_d_conv"},
                                      {"use_conv_bias", "mamba_conv_bias"},
                                      {"use_bias", "mamba_proj_bias"},
                                      {"n_groups", "mamba_n_groups"},
                                      {"mamba_num_heads", "mamba_n_heads"},
                                      {"mamba_head_dim", "mamba_d_head"},
                                      {"ssm_state_size", "mamba_d_state"}},
                        .embedding = "backbone.embeddings.weight",
                        .defaults = kNemotronHDefaults,
                        .norm = {.epsilon = "layer_norm_epsilon"},
                        .experts = ExpertFacts{.count = "n_routed_experts",
                                               .shared_width = "moe_shared_expert_intermediate_size",
                                               .scores = ExpertScores::sigmoid,
                                               .normalizes = true,
                                               .first = "",
                                               .step = ""},
                        .halves = HalfFacts{},
                        .recurrent = RecurrentFacts{.kind = RecurrentKind::mamba2,
                                                    .least_step = "time_step_min",
                                                    .default_least_step = kLeastStep},
                        .counts = {{&ModelConfig::expert_input_width, "moe_latent_size", "moe_latent_size"}},
                        .switches = {{&ModelConfig::attention_bias, "attention_bias"},
                                     {&ModelConfig::attention_output_bias, "attention_bias"}},
                        .keys = {"n_shared_experts"},
                        .complete = complete_nemotron_h},
              .weights = nemotron_h_weights(),
              .forward = nemotron_h_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 1}},
              .fusions_per_recurrent_layer = {{"rms_quant", 1}},
              .check = nn::check_plain_decoder,
              .sample_config = kNemotronHSample});
}
