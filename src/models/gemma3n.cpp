// Gemma 3n, the part for text: Gemma 4's attention and inputs of each layer, with four residual streams, a low-rank
// part next to attention, and in the first layers a gate that few numbers pass.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/layer_input.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/residual_streams.h"
#include "ops/add.h"
#include "ops/div_scalar.h"
#include "ops/mul.h"

namespace weft {
namespace {

// The layer's result for the active stream x.
Value layer_of(Builder& b, nn::DecoderStep& step, const Value& x, int layer) {
  const Value h = nn::norm(b, x, "attn_norm", layer);
  const Value low_rank = nn::linear(b, nn::linear(b, h, "laurel_l", layer), "laurel_r", layer);
  const Value augmented = add(h, nn::norm(b, low_rank, "laurel_post_norm", layer));
  const Value attended =
      nn::norm(b, nn::self_attention_with_all_norms(b, step, h, layer), "post_attention_norm", layer);
  const Value y = div_scalar(add(add(x, attended), augmented), std::numbers::sqrt2);
  const Value fed = nn::gated_feed_forward(b, nn::norm(b, y, "ffn_norm", layer), layer);
  return add(y, nn::norm(b, fed, "post_ffw_norm", layer));
}

Values gemma3n_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const Value x = nn::times_root_of_width(b, nn::embedded_tokens(b, step.ids));
  const Values inputs = nn::layer_inputs(b, step.ids, x);
  Values streams = nn::split_streams(b, x);
  for (int layer = 0; layer < b.facts.config.layer_count; ++layer) {
    b.enter_layer(layer);
    const Values predicted = nn::predicted_streams(b, streams, layer);
    streams = nn::corrected_streams(b, predicted, layer_of(b, step, predicted[0], layer), layer);
    const bool is_scaled = b.has("altup_correct_scale", layer);
    const Value active = is_scaled ? mul(streams[0], nn::norm_weight(b, "altup_correct_scale", layer)) : streams[0];
    const Value input = nn::gated_layer_input(b, active, inputs[static_cast<std::size_t>(layer)], layer);
    for (std::size_t i = 1; i < streams.size(); ++i) streams[i] = add(streams[i], input);
  }
  b.enter_layer(-1);
  return nn::decoder_results(step, nn::norm(b, nn::joined_streams(b, streams), "output_norm"));
}

void check_gemma3n(const ModelConfig& c) {
  nn::check_decoder(c);
  nn::check_gated_activation(c);
  nn::check_residual_streams(c);
  const std::string& activation = c.hidden_activation.empty() ? c.hidden_act : c.hidden_activation;
  USER_CHECK(activation == "gelu_pytorch_tanh", "[{}] hidden_activation must be gelu_pytorch_tanh, but is {}",
             c.architecture, activation);
  USER_CHECK(c.layer_input_width > 0, "[{}] hidden_size_per_layer_input must be above 0, but is {}", c.architecture,
             c.layer_input_width);
  USER_CHECK(c.low_rank > 0, "[{}] laurel_rank must be above 0, but is {}", c.architecture, c.low_rank);
}

constexpr const char* kGemma3nDefaults = R"({
  "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": true, "hidden_size": 2048, "intermediate_size": 16384,
  "num_hidden_layers": 35, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 262400,
  "vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256, "rms_norm_eps": 1e-6,
  "max_position_embeddings": 32768, "sliding_window": 512, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
  "num_kv_shared_layers": 15, "final_logit_softcapping": 30.0, "laurel_rank": 64, "altup_num_inputs": 4,
  "altup_active_idx": 0, "altup_correct_scale": true
})";

void complete_gemma3n(ModelConfig& c) {
  constexpr std::int64_t kSparseLayers = 10;
  constexpr double kCut = 1.6448536269514722;  // 0.95 of a normal variable's values are below it
  c.attention_scale = 1;
  const bool is_stated = !c.gate_cuts.empty() || c.format == CheckpointFormat::gguf;
  if (is_stated || c.layer_count <= kSparseLayers) return;
  c.gate_cuts.assign(static_cast<std::size_t>(c.layer_count), -INFINITY);
  std::fill_n(c.gate_cuts.begin(), kSparseLayers, kCut);
}

using Extents = std::vector<std::int64_t>;

Extents low_rank_rows(const ModelConfig& c, int) { return {c.low_rank, c.hidden_size}; }
Extents low_rank_columns(const ModelConfig& c, int) { return {c.hidden_size, c.low_rank}; }
Extents per_low_rank_result(const ModelConfig& c, int) { return {c.hidden_size}; }
Extents per_scaled_hidden(const ModelConfig& c, int) {
  return c.scales_active_stream ? Extents{c.hidden_size} : Extents();
}

nn::WeightTable gemma3n_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::rename(weights, {{"ffn_norm", "", "model.layers.{}.pre_feedforward_layernorm"}});
  nn::add_post_norms(weights);
  nn::add_head_norms(weights);
  nn::add_layer_inputs(weights);
  nn::add_residual_streams(weights);
  const auto add = [&](const std::string& name, const std::string& in_folder, auto shape) {
    weights.push_back({name, "blk.{}." + name + ".weight", "model.layers.{}." + in_folder, shape});
  };
  add("laurel_l", "laurel.linear_left.weight", low_rank_rows);
  add("laurel_r", "laurel.linear_right.weight", low_rank_columns);
  add("laurel_post_norm", "laurel.post_laurel_norm.weight", per_low_rank_result);
  add("altup_correct_scale", "altup.correct_output_scale", per_scaled_hidden);
  return weights;
}

constexpr const char* kGemma3nSample = R"({
  "architectures": ["Gemma3nForCausalLM"], "model_type": "gemma3n_text", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
  "rms_norm_eps": 1e-6, "tie_word_embeddings": false, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 32,
  "sliding_window": 9, "sliding_window_pattern": 2, "num_kv_shared_layers": 0, "hidden_size_per_layer_input": 32,
  "laurel_rank": 32, "altup_num_inputs": 3, "activation_sparsity_pattern": 0.75, "vocab_size": 257,
  "vocab_size_per_layer_input": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(gemma3n) {
  using namespace weft;
  models.add(
      {.architectures = {"gemma3n_text"},
       .gguf_architecture = "gemma3n",
       .facts = {.defaults = kGemma3nDefaults,
                 .window = WindowFacts{.period = 5},
                 .rotary = {.has_sliding_positions = true, .sliding_theta = 10000.0},
                 .numbers = {{&ModelConfig::logit_softcap, "final_logit_softcapping", "final_logit_softcapping"}},
                 .counts = {{&ModelConfig::shared_kv_layer_count, "num_kv_shared_layers", "attention.shared_kv_layers"},
                            {&ModelConfig::layer_input_width, "hidden_size_per_layer_input",
                             "embedding_length_per_layer_input"},
                            {&ModelConfig::layer_input_vocab_size, "vocab_size_per_layer_input", "",
                             "per_layer_token_embd.weight"},
                            {&ModelConfig::low_rank, "laurel_rank", "", "blk.0.laurel_l.weight"},
                            {&ModelConfig::stream_count, "altup_num_inputs", "altup.num_inputs"},
                            {&ModelConfig::active_stream, "altup_active_idx", "altup.active_idx"}},
                 .switches = {{&ModelConfig::scales_active_stream, "altup_correct_scale", "",
                               "blk.0.altup_correct_scale.weight"}},
                 // Published files have query_pre_attn_scalar of the earlier Gemmas, whose classes read it: here scores
                 // have the scale 1.
                 .keys = {"hidden_activation", "rope_local_base_freq", "rope.freq_base_swa",
                          "activation_sparsity_pattern", "activation_sparsity_scale", "query_pre_attn_scalar"},
                 .complete = complete_gemma3n},
       .weights = gemma3n_weights(),
       .forward = gemma3n_forward,
       .head = nn::decoder_head,
       .check = check_gemma3n,
       .sample_config = kGemma3nSample});
}
