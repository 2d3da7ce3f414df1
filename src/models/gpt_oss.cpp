// gpt-oss: biases of all linear layers, sinks of attention, a window in every second layer, and experts in all layers.
// Gate and up of an expert are limited before they are combined. In folders of transformers they alternate within one
// stack; GGUF files, and folders of mlx-lm (io/mlx_stacks.h), have a stack for each.

#include "base/error.h"
#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/experts.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"
#include "ops/silu_and_mul_with_clamp.h"
#include "ops/swigluoai_and_mul.h"

namespace weft {
namespace {

Value gpt_oss_gate(const ModelConfig& c, const Value& gate_up) {
  constexpr double kAlpha = 1.702, kBeta = 1;
  const bool alternate = c.format == CheckpointFormat::hugging_face && c.experts->is_merged;
  return alternate ? swigluoai_and_mul(gate_up, kAlpha, c.gate_limit)
                   : silu_and_mul_with_clamp(gate_up, c.gate_limit, kAlpha, kBeta);
}

Values gpt_oss_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto gate = [&](const Value& gate_up) { return gpt_oss_gate(b.facts.config, gate_up); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::routed_feed_forward(b, x, gate, layer); };
  return nn::pre_norm_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

void check_gpt_oss(const ModelConfig& c) {
  nn::check_gated_decoder(c);
  USER_CHECK(c.experts.has_value(), "[{}] wanted a mixture of experts, but the model has none", c.architecture);
  USER_CHECK(c.gate_limit > 0, "[{}] swiglu_limit must be above 0, but is {}", c.architecture, c.gate_limit);
}

// GGUF files state neither: the range of interpolated positions is not rounded, and the limit is the published one.
void complete_gpt_oss(ModelConfig& c) {
  c.rope.scaling.truncate = c.rope.scaling.truncate && c.format == CheckpointFormat::hugging_face;
  if (c.format == CheckpointFormat::gguf) c.gate_limit = 7;
}

using Extents = std::vector<std::int64_t>;
bool is_merged_in(const ModelConfig& c) { return c.experts && c.experts->is_merged; }
Extents per_router_row(const ModelConfig& c, int) { return c.experts ? Extents{c.experts->count} : Extents(); }
Extents per_gate_up_of_experts(const ModelConfig& c, int) {
  return is_merged_in(c) ? Extents{c.experts->count, 2 * c.experts->width} : Extents();
}
Extents per_gate_of_experts(const ModelConfig& c, int) {
  return c.experts && !is_merged_in(c) ? Extents{c.experts->count, c.experts->width} : Extents();
}
template <bool is_merged>
Extents per_output_of_experts(const ModelConfig& c, int) {
  return c.experts && c.experts->is_merged == is_merged ? Extents{c.experts->count, c.hidden_size} : Extents();
}
Extents per_head(const ModelConfig& c, int) { return {c.head_count}; }

nn::WeightTable gpt_oss_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_experts(weights);
  nn::rename(weights,
             {{"ffn_norm", "blk.{}.post_attention_norm", ""}, {"ffn_gate_inp", "", "model.layers.{}.mlp.router"}});
  const std::string folder = "model.layers.{}.mlp.", experts = folder + "experts.", expert = experts + "{}.",
                    gguf = "blk.{}.";
  const std::string gate_up = experts + "gate_up_proj", down = experts + "down_proj";
  nn::name_merged_experts(weights, gate_up, down);
  for (ModelWeight& weight : weights)
    if (weight.hugging_face == gate_up || weight.hugging_face == down)
      weight.transposed_in = {CheckpointFormat::hugging_face};
  const auto add_bias = [&](const std::string& name, const std::string& in_folder, auto shape) {
    weights.push_back({name + ".bias", gguf + name + ".bias", in_folder, shape});
  };
  add_bias("ffn_gate_inp", folder + "router.bias", per_router_row);
  add_bias("ffn_gate_up_exps", experts + "gate_up_proj_bias", per_gate_up_of_experts);
  add_bias("ffn_down_exps", experts + "down_proj_bias", per_output_of_experts<true>);
  add_bias("ffn_gate_exps", expert + "gate_proj.bias", per_gate_of_experts);
  add_bias("ffn_up_exps", expert + "up_proj.bias", per_gate_of_experts);
  add_bias("ffn_down_exps", expert + "down_proj.bias", per_output_of_experts<false>);
  weights.push_back({"attn_sinks", gguf + "attn_sinks.weight", "model.layers.{}.self_attn.sinks", per_head});
  return weights;
}

constexpr const char* kGptOssSample = R"({
  "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 32, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
  "rope_parameters": {"rope_type": "default", "rope_theta": 150000.0},
  "tie_word_embeddings": false, "attention_bias": true, "sliding_window": 9, "num_local_experts": 4,
  "num_experts_per_tok": 2, "swiglu_limit": 7.0, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(gpt_oss) {
  using namespace weft;
  models.add({.architectures = {"gpt_oss"},
              .gguf_architecture = "gpt-oss",
              .facts = {.defaults = R"({"head_dim": 64, "attention_bias": true, "sliding_window": 128,
                                 "num_local_experts": 128, "num_experts_per_tok": 4, "swiglu_limit": 7.0,
                                 "rope_theta": 150000.0, "rms_norm_eps": 1e-5, "max_position_embeddings": 131072,
  "rope_parameters": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
  "truncate": false, "original_max_position_embeddings": 4096}})",
                        .window = WindowFacts{.period = 2},
                        .experts = ExpertFacts{.count = "num_local_experts",
                                               .width = "intermediate_size",
                                               .scores = ExpertScores::softmax_of_chosen,
                                               .is_merged_in_folders = true},
                        .numbers = {{&ModelConfig::gate_limit, "swiglu_limit"}},
                        .switches = attention_biases(),
                        .keys = {"experts_per_token", "initial_context_length"},
                        .complete = complete_gpt_oss},
              .weights = gpt_oss_weights(),
              .forward = gpt_oss_forward,
              .head = nn::decoder_head,
              .fusions_per_mixture = {{"rms_quant", 1}, {"rope_kvcache", 1}},
              .check = check_gpt_oss,
              .sample_config = kGptOssSample});
}
