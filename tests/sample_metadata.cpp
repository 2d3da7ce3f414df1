// The part of SampleCheckpoint that writes the metadata of a GGUF file.

#include <algorithm>
#include <cmath>

#include "io/expert_config.h"
#include "io/feed_forward_config.h"
#include "nn/rope.h"
#include "tests/io/gguf_types.h"
#include "tests/sample_checkpoint.h"

namespace weft {

// Scaling of positions and layers with a window.
void SampleCheckpoint::add_positions(testing::GgufBytes& file, const std::string& prefix) const {
  const auto u32 = [&](const char* key, std::int64_t value) {
    file.u32(prefix + key, static_cast<std::uint32_t>(value));
  };
  const auto f32 = [&](const char* key, double value) { file.f32(prefix + key, static_cast<float>(value)); };
  const RopeScaling& scaling = config_.rope.scaling;
  // The factors of proportional positions, and those of longrope, are tensors.
  if (scaling.type == RopeScalingType::longrope) {
    u32("rope.scaling.original_context_length", scaling.original_context_length);
    f32("rope.scaling.attn_factor", nn::rotary_magnitude(config_.rope, config_.context_length));
  } else if (scaling.type != RopeScalingType::none && scaling.type != RopeScalingType::proportional) {
    file.text(prefix + "rope.scaling.type", std::string(rope_scaling_text(scaling.type)));
    f32("rope.scaling.factor", scaling.factor);
    u32("rope.scaling.original_context_length", scaling.original_context_length);
  }
  // Files of DeepSeek have a tenth of it.
  if (scaling.mscale_all_dim)
    f32("rope.scaling.yarn_log_multiplier", *scaling.mscale_all_dim * (config_.latents ? 0.1 : 1));
  if (!facts_.rotary.switch_in_gguf.empty())
    file.boolean(prefix + std::string(facts_.rotary.switch_in_gguf), config_.rope_of(0) != nullptr);
  if (config_.rope.query_scale_beta != 0) f32("attention.temperature_scale", config_.rope.query_scale_beta);
  if (!config_.is_causal) file.boolean(prefix + "attention.causal", false);
  if (!config_.sliding_window) return;
  u32("attention.sliding_window", config_.is_causal ? *config_.sliding_window : 2 * (*config_.sliding_window - 1));
  if (config_.sliding_rope) f32("rope.freq_base_swa", config_.sliding_rope->theta);
  if (!config_.has_window.empty() && facts_.window->period)
    file.booleans(prefix + "attention.sliding_window_pattern", config_.has_window);
  if (config_.full_head_dim == 0) return;
  u32("attention.key_length_swa", config_.head_dim);
  u32("attention.value_length_swa", config_.head_dim);
  u32("rope.dimension_count_swa", config_.sliding_rope->rotary_dim);
}

// Early files have the widths of heads before their keys and values became latents.
void SampleCheckpoint::add_latent_metadata(testing::GgufBytes& file, const std::string& prefix, GgufAge age) const {
  const auto u32 = [&](const std::string& key, std::int64_t value) {
    file.u32(prefix + "attention." + key, static_cast<std::uint32_t>(value));
  };
  const LatentConfig& l = *config_.latents;
  const std::string of_heads = age == GgufAge::early ? "" : "_mla";
  u32("q_lora_rank", l.query_rank);
  u32("kv_lora_rank", l.rank);
  u32("key_length" + of_heads, l.plain_dim + l.rotary_dim);
  u32("value_length" + of_heads, l.value_dim);
  u32("head_count_kv", age == GgufAge::early ? config_.head_count : 1);
  if (age == GgufAge::early) return;
  u32("key_length", l.rank + l.rotary_dim);
  u32("value_length", l.rank);
}

void SampleCheckpoint::add_metadata(testing::GgufBytes& file, GgufAge age) const {
  const std::string architecture = gguf_architecture_, prefix = architecture + ".";
  const auto u32 = [&](const char* key, std::int64_t value) {
    file.u32(prefix + key, static_cast<std::uint32_t>(value));
  };
  file.text("general.architecture", architecture);
  u32("block_count", config_.layer_count);
  u32("context_length", config_.context_length);
  u32("embedding_length", config_.hidden_size);
  u32("feed_forward_length", stated_feed_forward_width(config_, facts_));
  u32("attention.head_count", config_.head_count);
  const std::int64_t head_dim = config_.full_head_dim > 0 ? config_.full_head_dim : config_.head_dim;
  if (config_.latents) {
    add_latent_metadata(file, prefix, age);
  } else {
    if (!config_.recurrent || facts_.recurrent->period) u32("attention.head_count_kv", config_.kv_head_count);
    u32("attention.key_length", head_dim);
    u32("attention.value_length", head_dim);
  }
  u32("rope.dimension_count", config_.rope.rotary_dim);
  u32("vocab_size", config_.vocab_size);
  const auto f32 = [&](std::string_view key, double value) {
    file.f32(prefix + std::string(key), static_cast<float>(value));
  };
  f32(facts_.norm.epsilon_in_gguf(), config_.norm_eps);
  f32("rope.freq_base", config_.rope.theta);
  for (const NumberKey& number : facts_.numbers)
    if (!number.gguf.empty() && std::isfinite(config_.*number.field)) f32(number.gguf, config_.*number.field);
  for (const CountKey& count : facts_.counts)
    if (!count.gguf.empty())
      file.u32(prefix + std::string(count.gguf), static_cast<std::uint32_t>(config_.*count.field));
  for (const SwitchKey& one : facts_.switches)
    if (!one.gguf.empty()) file.boolean(prefix + std::string(one.gguf), config_.*one.field);
  add_positions(file, prefix);
  if (!config_.gate_cuts.empty()) file.f32s(prefix + "activation_sparsity_scale", config_.gate_cuts);
  for (const LayerNumbersKey& list : facts_.layer_numbers) {
    std::vector<double> numbers;
    for (const auto& [name, weight] : weights_)
      if (list_in_gguf(name) == list.gguf) numbers.push_back(*weight.as<float>());
    file.f32s(prefix + std::string(list.gguf), numbers);
  }
  if (config_.experts) add_expert_metadata(file, prefix);
  if (config_.recurrent) add_recurrent_metadata(file, prefix);
  const std::vector<std::string> texts = tokens();
  std::vector<std::int32_t> kinds(texts.size(), 1);
  for (std::size_t id = 0; id < kinds.size(); ++id)
    if (id >= 256 || id + 1 == kinds.size()) kinds[id] = 3;
  file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
  file.texts("tokenizer.ggml.tokens", texts).i32s("tokenizer.ggml.token_type", kinds);
  file.texts("tokenizer.ggml.merges", {});
  file.u32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(texts.size() - 1));
}

// Which layers are recurrent, and the widths of these.
void SampleCheckpoint::add_recurrent_metadata(testing::GgufBytes& file, const std::string& prefix) const {
  const auto u32 = [&](const char* key, std::int64_t value) {
    file.u32(prefix + key, static_cast<std::uint32_t>(value));
  };
  const RecurrentConfig& c = *config_.recurrent;
  if (facts_.recurrent->period) {
    file.booleans(prefix + "attention.recurrent_layers", config_.is_recurrent);
  } else {
    std::vector<std::int32_t> heads;
    for (int layer = 0; layer < config_.layer_count; ++layer)
      heads.push_back(config_.attends(layer) ? static_cast<std::int32_t>(config_.kv_head_count) : 0);
    file.i32s(prefix + "attention.head_count_kv", heads);
  }
  if (c.kind == RecurrentKind::short_convolution) return u32("shortconv.l_cache", c.convolution_width);
  u32("ssm.conv_kernel", c.convolution_width);
  if (c.kind == RecurrentKind::mamba) {
    u32("ssm.time_step_rank", c.step_rank);
    u32("ssm.state_size", c.key_dim);
    file.boolean(prefix + "ssm.dt_b_c_rms", c.normalizes_parts);
    return u32("ssm.inner_size", c.values_width());
  }
  u32("ssm.group_count", c.key_heads);
  u32("ssm.time_step_rank", c.value_heads);
  u32("ssm.state_size", c.key_dim);
  u32("ssm.inner_size", c.values_width());
}

// A mixture of experts, whose rule follows from the architecture unless the file states it.
void SampleCheckpoint::add_expert_metadata(testing::GgufBytes& file, const std::string& prefix) const {
  const auto u32 = [&](const char* key, std::int64_t value) {
    file.u32(prefix + key, static_cast<std::uint32_t>(value));
  };
  const ExpertConfig& experts = *config_.experts;
  u32("expert_count", experts.count);
  // Of the others files have no number.
  if (experts.scores != ExpertScores::sparse_mixer && !experts.weighs_inputs)
    u32("expert_gating_func", static_cast<std::int64_t>(experts.scores) + 1);
  u32("expert_used_count", experts.used);
  u32("expert_feed_forward_length", experts.width);
  u32("expert_shared_feed_forward_length", experts.shared_width);
  u32("expert_group_count", experts.groups);
  u32("expert_group_used_count", experts.used_groups);
  const RoutedLayers layers = routed_layers(config_);
  u32("leading_dense_block_count", layers.first);
  if (layers.step > 1) u32("interleave_moe_layer_step", layers.step);
  file.f32(prefix + "expert_weights_scale", static_cast<float>(experts.scale));
  file.boolean(prefix + "expert_weights_norm", experts.normalizes);
}

}  // namespace weft
