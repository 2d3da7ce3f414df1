// Jamba: Llama's layers without positions, most of which have Mamba 1 in place of attention. What is projected to the
// parameters of the state is normalized. Some layers have experts, whose weights are not divided by their sum.

#include "models/llama_layers.h"
#include "nn/attention.h"
#include "nn/mamba.h"

namespace weft {
namespace {

Values jamba_forward(Builder& b) {
  return nn::llama_forward_with(b, [](Builder& builder, nn::DecoderStep& step, const Value& x, int layer) {
    return builder.facts.config.recurs(layer) ? nn::mamba_mixer(builder, step, x, layer)
                                              : nn::self_attention(builder, step, x, layer);
  });
}

template <std::int64_t RecurrentConfig::*width>
std::vector<std::int64_t> per_part(const ModelConfig& c, int layer) {
  return c.recurs(layer) ? std::vector<std::int64_t>{(*c.recurrent).*width} : std::vector<std::int64_t>();
}

nn::WeightTable jamba_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string layer = "model.layers.{}.", feed_forward = layer + "feed_forward.", mamba = layer + "mamba.";
  nn::add_experts(weights, {.module = "feed_forward"});
  nn::rename(weights, {{"ffn_norm", "", layer + "pre_ff_layernorm"},
                       {"ffn_gate", "", feed_forward + "gate_proj"},
                       {"ffn_up", "", feed_forward + "up_proj"},
                       {"ffn_down", "", feed_forward + "down_proj"},
                       {"ffn_gate_inp", "", feed_forward + "router"},
                       {"output_norm", "", "model.final_layernorm"}});
  nn::add_mamba(weights, mamba);
  using Recurrent = RecurrentConfig;
  weights.push_back(
      {"ssm_dt_norm", "blk.{}.ssm_dt_norm.weight", mamba + "dt_layernorm.weight", per_part<&Recurrent::step_rank>});
  weights.push_back(
      {"ssm_b_norm", "blk.{}.ssm_b_norm.weight", mamba + "b_layernorm.weight", per_part<&Recurrent::key_dim>});
  weights.push_back(
      {"ssm_c_norm", "blk.{}.ssm_c_norm.weight", mamba + "c_layernorm.weight", per_part<&Recurrent::key_dim>});
  return weights;
}

constexpr const char* kJambaDefaults = R"({
  "rms_norm_eps": 1e-6, "max_position_embeddings": 262144, "num_experts": 16, "num_experts_per_tok": 2,
  "expert_layer_period": 2, "expert_layer_offset": 1, "attn_layer_period": 8, "attn_layer_offset": 4,
  "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2
})";

constexpr const char* kJambaSample = R"({
  "architectures": ["JambaForCausalLM"], "model_type": "jamba", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "tie_word_embeddings": false, "num_experts": 4,
  "num_experts_per_tok": 2, "expert_layer_period": 2, "expert_layer_offset": 1, "attn_layer_period": 4,
  "attn_layer_offset": 2, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 32,
  "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(jamba) {
  using namespace weft;
  ModelDefinition model = llama_layers("jamba",
                                       {.defaults = kJambaDefaults,
                                        .rotary = {.is_absent = true},
                                        .experts = ExpertFacts{.width = "intermediate_size",
                                                               .first = "",
                                                               .step = "expert_layer_period",
                                                               .offset = "expert_layer_offset",
                                                               .shows_layers_in_gguf = true,
                                                               .one_is_none = true},
                                        .recurrent = RecurrentFacts{.kind = RecurrentKind::mamba,
                                                                    .attending_period = "attn_layer_period",
                                                                    .attending_offset = "attn_layer_offset",
                                                                    .normalizes_parts = true},
                                        .keys = {"use_mambapy", "use_associative_scan"},
                                        .always = {"mamba_inner_layernorms"}},
                                       kJambaSample, jamba_weights());
  model.forward = jamba_forward;
  model.fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}};
  model.fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}};
  model.fusions_of_experts = {{"act_quant", 1}};
  model.fusions_per_recurrent_layer = {{"rms_quant", 2}, {"act_quant", 1}};
  model.fusions_per_recurrent_mixture = {{"rms_quant", 1}};
  models.add(std::move(model));
}
