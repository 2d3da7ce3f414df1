#include "options/custom_ops.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "options/effective_options.h"

namespace weft {
namespace {

constexpr std::string_view kName = "cc.custom_ops";

struct Layer {
  std::string_view name;  // in vLLM
  std::string_view ops;   // here; empty: no model here has the layer
};

// The layers that vLLM 0.32.0 registers.
constexpr Layer kLayers[] = {
    {"rms_norm", "rms_norm fused_add_rms_norm"},
    {"gemma_rms_norm", "rms_norm fused_add_rms_norm"},
    {"rms_norm_gated", ""},
    {"fused_rms_norm_gated", ""},
    {"layer_norm", ""},
    {"nemotron_layer_norm", ""},
    {"silu_and_mul", "silu_and_mul"},
    {"silu_and_mul_with_clamp", "silu_and_mul_with_clamp"},
    {"mul_and_silu", "mul_and_silu"},
    {"gelu", "gelu"},
    {"gelu_new", "gelu_new"},
    {"gelu_fast", "gelu_fast"},
    {"gelu_tanh", "gelu_tanh"},
    {"quick_gelu", "quick_gelu"},
    {"relu2", "relu2"},
    {"xielu", "xielu"},
    {"gelu_and_mul", "gelu_and_mul gelu_tanh_and_mul"},
    {"gelu_and_mul_sparse", "gelu_and_mul_sparse"},
    {"swigluoai_and_mul", "swigluoai_and_mul"},
    {"swiglustep_and_mul", "swiglustep_and_mul"},
    {"situ_and_mul", "situ_and_mul"},
    {"fatrelu_and_mul", "fatrelu_and_mul"},
    {"quant_fp8",
     "static_scaled_fp8_quant dynamic_scaled_fp8_quant dynamic_per_token_scaled_fp8_quant per_token_group_quant_fp8"},
    {"mla_decode_concat_quant_fp8", ""},
    {"rotary_embedding", "rotary_embedding"},
    {"dual_chunk_rotary_embedding", ""},
    {"apply_rotary_emb", ""},
    {"grouped_topk", ""},
    {"unquantized_fused_moe", ""},
    {"modular_fused_moe", ""},
    {"static_sink_attention", ""},
    {"mm_encoder_attn", ""},
    {"conv2d", ""},
    {"conv3d", ""},
    {"chunk_gated_delta_rule", ""},
    {"sparse_attn_indexer", ""},
    {"minimax_text01_rmsnorm_tp", ""},
    {"mixer2_gated_rms_norm", ""},
    {"mhc_pre", ""},
    {"mhc_post", ""},
    {"hc_head", ""},
    {"hpc_rope_norm", ""},
    {"fused_mm_input_norm", ""},
};

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_base_mode(const std::string& word) { return word == "all" || word == "none"; }

std::vector<std::string> ops_of(const Layer& layer) {
  return layer.ops.empty() ? std::vector<std::string>() : split_text(layer.ops, ' ');
}

// The layers with this sign.
std::vector<const Layer*> signed_layers(const Words& words, char sign) {
  std::vector<const Layer*> layers;
  for (const Layer& layer : kLayers)
    if (has(words, sign + std::string(layer.name))) layers.push_back(&layer);
  return layers;
}

bool is_op_of(const std::string& op, const std::vector<const Layer*>& layers) {
  return std::any_of(layers.begin(), layers.end(), [&](const Layer* layer) { return has(ops_of(*layer), op); });
}

}  // namespace

void check_custom_ops(const Words& words) {
  std::vector<std::string> known{"all", "none"};
  for (const Layer& layer : kLayers)
    for (const char sign : {'+', '-'}) known.push_back(sign + std::string(layer.name));
  std::string base;
  std::vector<std::string> unknown;
  for (const std::string& word : words) {
    if (is_base_mode(word)) {
      USER_CHECK(base.empty(), "[{}] wanted all or none once, but has {} and {}", kName, base, word);
      base = word;
    } else if (!has(known, word)) {
      unknown.push_back(quote(word) + suggestion(word, known));
    } else {
      const std::string layer = word.substr(1);
      USER_CHECK(!has(words, (word[0] == '+' ? '-' : '+') + layer), "[{}] has both +{} and -{}", kName, layer, layer);
    }
  }
  USER_CHECK(unknown.empty(), "[{}] wanted all, none, +layer or -layer with a layer of vLLM, but is {}", kName,
             fmt::join(unknown, "; "));
}

std::vector<std::string> layer_ops() {
  std::vector<std::string> ops;
  for (const Layer& layer : kLayers)
    for (std::string& op : ops_of(layer))
      if (!has(ops, op)) ops.push_back(std::move(op));
  return ops;
}

std::vector<std::string> translate_custom_ops(Options& options) {
  const Words words = std::exchange(options.custom_ops, {});
  if (words.empty()) return {};
  const bool is_open = std::none_of(words.begin(), words.end(), is_base_mode);
  const bool is_none =
      is_open ? eager_option(options).empty() && options.backend != "eager" : has(words, std::string("none"));
  const auto on = signed_layers(words, '+'), off = signed_layers(words, '-');
  Json spelling = Json::object();
  // Several layers may be the same op. One that is on or off by name decides.
  for (const std::string& op : layer_ops()) {
    const bool is_off = !is_op_of(op, on) && (is_none || is_op_of(op, off));
    if (!is_off || options.ir_op_priority.contains(op)) continue;
    options.ir_op_priority[op] = {std::string(kMayBeFused), "native"};
    spelling[op] = fmt::format("{}", fmt::join(options.ir_op_priority[op], ","));
  }
  const std::string given =
      fmt::format("-cc.custom_ops={}{}", fmt::join(words, ","), is_open && is_none ? " (and none, as in vLLM)" : "");
  std::vector<std::string> notes;
  if (spelling.empty()) {
    notes.push_back(fmt::format("{} changes nothing", given));
  } else {
    notes.push_back(fmt::format("{} is spelled --ir-op-priority='{}'", given, json_text(spelling)));
  }
  std::vector<std::string_view> missing;
  for (const auto& layers : {on, off})
    for (const Layer* layer : layers)
      if (layer->ops.empty()) missing.push_back(layer->name);
  if (!missing.empty())
    notes.push_back(fmt::format("[{}] no model here has {}: no effect", kName, fmt::join(missing, ", ")));
  return notes;
}

}  // namespace weft
