// Gemma 4: Gemma 3's layers with norms of the values, too, and with inputs of their own. Layers without a window have
// wider heads and rotate a part of them; the last layers read keys and values of earlier ones. Norms multiply by w.
// Layers may have a mixture of experts next to their feed-forward, each with norms of its own.

#include <cmath>

#include "base/error.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/layer_input.h"
#include "nn/norm.h"
#include "ops/add.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"

namespace weft {
namespace {

// The sum of the feed-forward and of the experts, whose router reads x with a norm of its own.
Value gemma4_feed_forward(Builder& b, const Value& x, int layer) {
  const Value dense = nn::dense_feed_forward(b, nn::norm(b, x, "ffn_norm", layer), layer);
  if (!b.facts.config.routes(layer)) return dense;
  const double root = std::sqrt(static_cast<double>(b.facts.config.hidden_size));
  const Value router_input = mul_scalar(nn::norm(b, x, "ffn_gate_inp.scale", layer), 1 / root);
  const Value routed = nn::expert_feed_forward(b, nn::norm(b, x, "pre_ffw_norm_2", layer), router_input, layer);
  return add(nn::norm(b, dense, "post_ffw_norm_1", layer), nn::norm(b, routed, "post_ffw_norm_2", layer));
}

Values gemma4_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  Value x = nn::times_root_of_width(b, nn::embedded_tokens(b, step.ids));
  const Values inputs = nn::layer_inputs(b, step.ids, x);
  for (int layer = 0; layer < b.facts.config.layer_count; ++layer) {
    b.enter_layer(layer);
    const Value attended = nn::self_attention_with_all_norms(b, step, nn::norm(b, x, "attn_norm", layer), layer);
    x = add(x, nn::norm(b, attended, "post_attention_norm", layer));
    const Value fed = gemma4_feed_forward(b, x, layer);
    x = add(x, nn::norm(b, fed, "post_ffw_norm", layer));
    if (!inputs.empty()) x = add(x, nn::gated_layer_input(b, x, inputs[static_cast<std::size_t>(layer)], layer));
    if (b.has("layer_scale", layer)) x = mul(x, nn::norm_weight(b, "layer_scale", layer));
  }
  b.enter_layer(-1);
  return nn::decoder_results(step, nn::norm(b, x, "output_norm"));
}

void check_gemma4(const ModelConfig& c) {
  nn::check_decoder(c);
  nn::check_gated_activation(c);
  const std::string& activation = c.hidden_activation.empty() ? c.hidden_act : c.hidden_activation;
  USER_CHECK(activation == "gelu_pytorch_tanh", "[{}] hidden_activation must be gelu_pytorch_tanh, but is {}",
             c.architecture, activation);
}

constexpr const char* kGemma4Defaults = R"({
  "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": true, "hidden_size": 2304, "intermediate_size": 9216,
  "num_hidden_layers": 30, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "global_head_dim": 512,
  "vocab_size": 262144, "vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256, "rms_norm_eps": 1e-6,
  "max_position_embeddings": 131072, "sliding_window": 512,
  "rope_parameters": {
    "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
})";

void complete_gemma4(ModelConfig& c) {
  c.attention_scale = 1;
  // The last layer has no window, whatever layer_types has, as in transformers.
  if (c.sliding_window && c.has_window.empty()) c.has_window.assign(static_cast<std::size_t>(c.layer_count), true);
  if (!c.has_window.empty()) c.has_window.back() = false;
  if (c.format == CheckpointFormat::hugging_face && !c.full_values_are_keys) c.full_kv_head_count = 0;
}

using Extents = std::vector<std::int64_t>;
Extents gemma4_one_number(const ModelConfig&, int) { return {1}; }
Extents gemma4_per_hidden_of_experts(const ModelConfig& c, int) {
  return c.experts ? Extents{c.hidden_size} : Extents();
}
Extents gemma4_per_expert(const ModelConfig& c, int) { return c.experts ? Extents{c.experts->count} : Extents(); }
Extents gemma4_router_rows(const ModelConfig& c, int) {
  return c.experts ? Extents{c.experts->count, c.hidden_size} : Extents();
}
bool gemma4_is_merged_in(const ModelConfig& c) { return c.experts && c.experts->is_merged; }
Extents gemma4_gate_up_of_experts(const ModelConfig& c, int) {
  return gemma4_is_merged_in(c) ? Extents{c.experts->count, 2 * c.experts->width, c.hidden_size} : Extents();
}
Extents gemma4_gate_of_experts(const ModelConfig& c, int) {
  return c.experts && !gemma4_is_merged_in(c) ? Extents{c.experts->count, c.experts->width, c.hidden_size} : Extents();
}
template <bool is_merged>
Extents gemma4_output_of_experts(const ModelConfig& c, int) {
  const bool has = c.experts && c.experts->is_merged == is_merged;
  return has ? Extents{c.experts->count, c.hidden_size, c.experts->width} : Extents();
}

// Folders of mlx-lm have stacks of gate and of up (io/mlx_stacks.h).
void add_gemma4_experts(nn::WeightTable& weights) {
  const std::string gguf = "blk.{}.", folder = "model.layers.{}.";
  const auto add_norm = [&](const std::string& name, const std::string& in_folder) {
    weights.push_back({name, gguf + name + ".weight", folder + in_folder + ".weight", gemma4_per_hidden_of_experts});
  };
  add_norm("pre_ffw_norm_2", "pre_feedforward_layernorm_2");
  add_norm("post_ffw_norm_1", "post_feedforward_layernorm_1");
  add_norm("post_ffw_norm_2", "post_feedforward_layernorm_2");
  const auto add_weight = [&](const std::string& name, const std::string& in_gguf, const std::string& in_folder,
                              auto shape) {
    weights.push_back({name, gguf + in_gguf, folder + in_folder, shape});
  };
  add_weight("ffn_gate_inp", "ffn_gate_inp.weight", "router.proj.weight", gemma4_router_rows);
  add_weight("ffn_gate_inp.scale", "ffn_gate_inp.scale", "router.scale", gemma4_per_hidden_of_experts);
  add_weight("ffn_gate_up_exps", "ffn_gate_up_exps.weight", "experts.gate_up_proj", gemma4_gate_up_of_experts);
  add_weight("ffn_down_exps", "ffn_down_exps.weight", "experts.down_proj", gemma4_output_of_experts<true>);
  add_weight("ffn_gate_exps", "ffn_gate_exps.weight", "experts.{}.gate_proj.weight", gemma4_gate_of_experts);
  add_weight("ffn_up_exps", "ffn_up_exps.weight", "experts.{}.up_proj.weight", gemma4_gate_of_experts);
  add_weight("ffn_down_exps", "ffn_down_exps.weight", "experts.{}.down_proj.weight", gemma4_output_of_experts<false>);
  add_weight("ffn_down_exps.scale", "ffn_down_exps.scale", "router.per_expert_scale", gemma4_per_expert);
}

nn::WeightTable gemma4_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::rename(weights, {{"ffn_norm", "", "model.layers.{}.pre_feedforward_layernorm"}});
  nn::add_post_norms(weights);
  nn::add_head_norms(weights);
  nn::add_layer_inputs(weights);
  add_gemma4_experts(weights);
  weights.push_back(
      {"layer_scale", "blk.{}.layer_output_scale.weight", "model.layers.{}.layer_scalar", gemma4_one_number});
  return weights;
}

constexpr const char* kGemma4Sample = R"({
  "architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
  "rms_norm_eps": 1e-6, "tie_word_embeddings": false, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 32,
  "global_head_dim": 64, "sliding_window": 9, "sliding_window_pattern": 2, "hidden_size_per_layer_input": 32,
  "vocab_size": 257, "vocab_size_per_layer_input": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(gemma4) {
  using namespace weft;
  models.add(
      {.architectures = {"gemma4_text"},
       .gguf_architecture = "gemma4",
       .facts = {.defaults = kGemma4Defaults,
                 .window = WindowFacts{.period = 6},
                 .rotary = {.has_sliding_positions = true, .sliding_theta = 10000.0},
                 .experts = ExpertFacts{.normalizes = true,
                                        .is_merged_in_folders = true,
                                        .used = "top_k_experts",
                                        .enabled_by = "enable_moe_block",
                                        .keeps_dense = true},
                 .numbers = {{&ModelConfig::logit_softcap, "final_logit_softcapping", "final_logit_softcapping"}},
                 .counts = {{&ModelConfig::full_head_dim, "global_head_dim"},
                            {&ModelConfig::full_kv_head_count, "num_global_key_value_heads"},
                            {&ModelConfig::shared_kv_layer_count, "num_kv_shared_layers", "attention.shared_kv_layers"},
                            {&ModelConfig::layer_input_width, "hidden_size_per_layer_input",
                             "embedding_length_per_layer_input"},
                            {&ModelConfig::layer_input_vocab_size, "vocab_size_per_layer_input", "",
                             "per_layer_token_embd.weight"}},
                 .switches = {{&ModelConfig::full_values_are_keys, "attention_k_eq_v"},
                              {&ModelConfig::widens_shared_layers, "use_double_wide_mlp"}},
                 .keys = {"hidden_activation", "rope.freq_base_swa", "query_pre_attn_scalar", "per_layer_config"},
                 .complete = complete_gemma4},
       .weights = gemma4_weights(),
       .forward = gemma4_forward,
       .head = nn::decoder_head,
       .check = check_gemma4,
       .sample_config = kGemma4Sample});
}
