#include "io/recurrent_config.h"

#include <algorithm>

#include "base/error.h"
#include "io/layer_config.h"

namespace weft {
namespace {

constexpr Range<std::int64_t> kTaps = {2, 64};
constexpr Range<std::int64_t> kStateWidths = {1, 65536};

constexpr std::string_view kPeriod = "full_attention_interval";
constexpr std::string_view kMambaGroups = "mamba_n_groups", kMambaHeads = "mamba_n_heads",
                           kMambaHeadWidth = "mamba_d_head", kMambaWidth = "mamba_d_ssm",
                           kMambaExpansion = "mamba_expand", kOutputBias = "projectors_bias",
                           kSteps = "time_step_limit", kHasNorm = "mamba_rms_norm",
                           kNormsFirst = "mamba_norm_before_gate", kInputFactor = "ssm_in_multiplier",
                           kPartFactors = "ssm_multipliers", kOutputFactor = "ssm_out_multiplier";
constexpr Range<double> kMambaFactors = {-1e6, 1e6};
constexpr std::string_view kStepRank = "mamba_dt_rank", kNormalizesParts = "ssm.dt_b_c_rms";

std::int64_t needed_width(const JsonFields& fields, std::string_view key) {
  return needed_integer_in(fields, key, kStateWidths);
}
std::int64_t needed_width(const GgufFields& fields, std::string_view key) {
  return needed_integer_in(fields, key, kStateWidths);
}

template <class Fields>
void check_heads(const Fields& fields, const RecurrentConfig& recurrent, std::string_view key_heads,
                 std::string_view value_heads) {
  USER_CHECK(recurrent.value_heads % recurrent.key_heads == 0, "[{}] {} must divide {} {}, but is {}", fields.where(),
             fields.name(key_heads), fields.name(value_heads), recurrent.value_heads, recurrent.key_heads);
}

// ---- config.json ----

std::vector<bool> all_but(const std::vector<std::int64_t>& attending, std::int64_t layers) {
  std::vector<bool> result(static_cast<std::size_t>(layers), true);
  for (const std::int64_t layer : attending)
    if (layer >= 0 && layer < layers) result[static_cast<std::size_t>(layer)] = false;
  return result;
}

std::vector<bool> recurrent_layers(const JsonFields& fields, const RecurrentFacts& facts, std::int64_t layers) {
  if (facts.has_attention) return std::vector<bool>(static_cast<std::size_t>(layers), true);
  const std::vector<std::string_view> others{"full_attention", "attention"};
  const std::vector<bool> stated = layers_of_words(fields, "layer_types", facts.words, others, layers);
  if (!stated.empty()) return stated;
  if (fields.has(facts.attending)) return all_but(fields.find_integers(facts.attending), layers);
  if (!facts.attending_period.empty()) {
    const std::int64_t period = needed_integer_in(fields, facts.attending_period, {1, kLayers.greatest});
    const std::int64_t offset = needed_integer_in(fields, facts.attending_offset, {0, period - 1});
    std::vector<bool> result;
    for (std::int64_t layer = 0; layer < layers; ++layer) result.push_back(layer % period != offset);
    return result;
  }
  if (!facts.period) return std::vector<bool>(static_cast<std::size_t>(layers), false);
  const auto period = integer_in(fields, kPeriod, {1, kLayers.greatest});
  return all_but_every(period.value_or(*facts.period), layers);
}

void read_delta(const JsonFields& fields, RecurrentConfig& recurrent) {
  constexpr std::string_view kKeyHeads = "linear_num_key_heads", kValueHeads = "linear_num_value_heads";
  recurrent.convolution_width = needed_integer_in(fields, "linear_conv_kernel_dim", kTaps);
  recurrent.key_heads = needed_integer_in(fields, kKeyHeads, kHeads);
  recurrent.value_heads = needed_integer_in(fields, kValueHeads, kHeads);
  recurrent.key_dim = needed_width(fields, "linear_key_head_dim");
  recurrent.value_dim = needed_width(fields, "linear_value_head_dim");
  check_heads(fields, recurrent, kKeyHeads, kValueHeads);
}

// The bounds of steps, of which JSON has the infinite one as transformers writes it.
void read_steps(const JsonFields& fields, const RecurrentFacts& facts, RecurrentConfig& recurrent) {
  if (!facts.least_step.empty()) {
    recurrent.least_step = real_in(fields, facts.least_step, {0, 1e6}).value_or(facts.default_least_step);
    return;
  }
  const Json* limits = fields.value(kSteps);
  if (limits == nullptr) return;
  const auto is_bound = [](const Json& one) { return one.is_number() && one.get<double>() >= 0; };
  const bool is_pair = limits->is_array() && limits->size() == 2;
  const bool is_open = is_pair && (*limits)[1] == Json{{"__float__", "Infinity"}};
  USER_CHECK(is_pair && is_bound((*limits)[0]) && (is_open || is_bound((*limits)[1])),
             "[{}] {} must be the least step and the largest one, but is {}", fields.where(), fields.name(kSteps),
             shown_json(*limits));
  recurrent.least_step = (*limits)[0].get<double>();
  if (!is_open) recurrent.largest_step = (*limits)[1].get<double>();
}

// The width of the values of all heads; nullopt for files that state it by the heads alone.
std::optional<std::int64_t> mamba_width(const JsonFields& fields, const ModelConfig& config) {
  if (const auto width = integer_in(fields, kMambaWidth, kStateWidths)) return width;
  const auto expansion = integer_in(fields, kMambaExpansion, kStateWidths);
  return expansion ? std::optional(*expansion * config.hidden_size) : std::nullopt;
}

// What is projected to the steps has a width of its own, or by "auto" a part of hidden_size.
std::int64_t step_rank(const JsonFields& fields, const ModelConfig& config) {
  constexpr std::int64_t kPart = 16;
  const Json* rank = fields.value(kStepRank);
  if (rank == nullptr || *rank == "auto") return (config.hidden_size + kPart - 1) / kPart;
  return needed_width(fields, kStepRank);
}

void read_mamba(const JsonFields& fields, const RecurrentFacts& facts, const ModelConfig& config,
                RecurrentConfig& recurrent) {
  recurrent.convolution_width = needed_integer_in(fields, "mamba_d_conv", kTaps);
  recurrent.has_convolution_bias = fields.find_boolean("mamba_conv_bias").value_or(true);
  recurrent.has_projection_bias = fields.find_boolean("mamba_proj_bias").value_or(false);
  recurrent.has_output_bias = recurrent.has_projection_bias;
  recurrent.key_heads = recurrent.value_heads = 1;
  recurrent.key_dim = needed_width(fields, "mamba_d_state");
  const std::optional<std::int64_t> inner = mamba_width(fields, config);
  USER_CHECK(inner, "[{}] wanted {} or {}, but there is neither", fields.where(), fields.name(kMambaWidth),
             fields.name(kMambaExpansion));
  recurrent.value_dim = *inner;
  recurrent.step_rank = step_rank(fields, config);
  recurrent.normalizes_parts = facts.normalizes_parts;
  recurrent.parts_epsilon = real_in(fields, facts.parts_epsilon, {1e-12, 1}).value_or(config.norm_eps);
}

void read_mamba2(const JsonFields& fields, const RecurrentFacts& facts, const ModelConfig& config,
                 RecurrentConfig& recurrent) {
  recurrent.convolution_width = needed_integer_in(fields, "mamba_d_conv", kTaps);
  recurrent.has_convolution_bias = fields.find_boolean("mamba_conv_bias").value_or(true);
  recurrent.has_projection_bias = fields.find_boolean("mamba_proj_bias").value_or(false);
  recurrent.has_output_bias = fields.find_boolean(kOutputBias).value_or(recurrent.has_projection_bias);
  recurrent.key_heads = needed_integer_in(fields, kMambaGroups, kHeads);
  recurrent.value_heads = needed_integer_in(fields, kMambaHeads, kHeads);
  recurrent.key_dim = needed_width(fields, "mamba_d_state");
  const std::optional<std::int64_t> inner = mamba_width(fields, config);
  const Json* width = fields.value(kMambaHeadWidth);
  const bool follows = inner && (width == nullptr || width->is_string());
  recurrent.value_dim = follows ? *inner / recurrent.value_heads : needed_width(fields, kMambaHeadWidth);
  USER_CHECK(!inner || recurrent.values_width() == *inner, "[{}] {} times {} must be the width {}, but is {} times {}",
             fields.where(), fields.name(kMambaHeads), fields.name(kMambaHeadWidth), *inner, recurrent.value_heads,
             recurrent.value_dim);
  check_heads(fields, recurrent, kMambaGroups, kMambaHeads);
  recurrent.has_norm = fields.find_boolean(kHasNorm).value_or(true);
  recurrent.norms_before_gate = fields.find_boolean(kNormsFirst).value_or(false);
  read_steps(fields, facts, recurrent);
  MambaFactors& factors = recurrent.factors;
  factors.input = real_in(fields, kInputFactor, kMambaFactors).value_or(1);
  factors.output = real_in(fields, kOutputFactor, kMambaFactors).value_or(1);
  read_list(fields, kPartFactors, kMambaFactors,
            {&factors.gate, &factors.value, &factors.key, &factors.query, &factors.step});
}

// ---- GGUF ----

// Layers without key heads, or all but the last one of each period.
std::vector<bool> recurrent_layers(const GgufFields& fields, const Gguf& gguf, const RecurrentFacts& facts,
                                   std::int64_t layers) {
  if (facts.has_attention) return std::vector<bool>(static_cast<std::size_t>(layers), true);
  const auto of_list = [&](const char* key, std::int64_t recurrent) -> std::vector<bool> {
    const GgufValue* value = gguf.find(fields.name(key));
    if (value == nullptr || !value->is_array) return {};
    std::vector<std::int64_t> numbers;
    if (value->type == GgufType::boolean) {
      for (const std::byte one : value->data) numbers.push_back(one != std::byte{0} ? 1 : 0);
    } else {
      numbers = gguf.find_integers(fields.name(key)).value();
    }
    USER_CHECK(std::ssize(numbers) >= layers, "[{}] {} must have a number for each of {} layers, but has {}",
               fields.where(), fields.name(key), layers, numbers.size());
    std::vector<bool> result;
    for (std::int64_t i = 0; i < layers; ++i) result.push_back(numbers[static_cast<std::size_t>(i)] == recurrent);
    return result;
  };
  if (!facts.period) return of_list("attention.head_count_kv", 0);
  if (const std::vector<bool> stated = of_list("attention.recurrent_layers", 1); !stated.empty()) return stated;
  const auto period = integer_in(fields, kPeriod, {1, kLayers.greatest});
  return all_but_every(period.value_or(*facts.period), layers);
}

void read_states(const GgufFields& fields, RecurrentConfig& recurrent) {
  constexpr std::string_view kInner = "ssm.inner_size", kHeadCount = "ssm.time_step_rank", kGroups = "ssm.group_count";
  recurrent.convolution_width = needed_integer_in(fields, "ssm.conv_kernel", kTaps);
  recurrent.key_heads = needed_integer_in(fields, kGroups, kHeads);
  recurrent.value_heads = needed_integer_in(fields, kHeadCount, kHeads);
  recurrent.key_dim = needed_width(fields, "ssm.state_size");
  const std::int64_t inner = needed_integer_in(fields, kInner, {1, 1 << 24});
  USER_CHECK(inner % recurrent.value_heads == 0, "[{}] {} must divide {} {}, but is {}", fields.where(),
             fields.name(kHeadCount), fields.name(kInner), inner, recurrent.value_heads);
  recurrent.value_dim = inner / recurrent.value_heads;
  check_heads(fields, recurrent, kGroups, kHeadCount);
}

void read_mamba(const GgufFields& fields, const RecurrentFacts& facts, double epsilon, RecurrentConfig& recurrent) {
  recurrent.convolution_width = needed_integer_in(fields, "ssm.conv_kernel", kTaps);
  recurrent.key_heads = recurrent.value_heads = 1;
  recurrent.key_dim = needed_width(fields, "ssm.state_size");
  recurrent.value_dim = needed_integer_in(fields, "ssm.inner_size", {1, 1 << 24});
  recurrent.step_rank = needed_width(fields, "ssm.time_step_rank");
  recurrent.normalizes_parts = fields.find_boolean(kNormalizesParts).value_or(facts.normalizes_parts);
  recurrent.parts_epsilon = epsilon;
}

void set_layers(std::vector<bool> layers, const RecurrentFacts& facts, const RecurrentConfig& recurrent,
                ModelConfig& config) {
  config.recurrent = recurrent;
  config.is_recurrent = std::move(layers);
  config.has_attention_everywhere = facts.has_attention;
}

std::vector<bool> recurrent_halves(const ModelConfig& config) {
  std::vector<bool> layers;
  for (const HalfKind half : config.halves) layers.push_back(half == HalfKind::recurrent);
  return layers;
}

bool any_of(const std::vector<bool>& layers) { return std::count(layers.begin(), layers.end(), true) > 0; }

}  // namespace

std::vector<std::string_view> recurrent_keys(const std::optional<RecurrentFacts>& facts) {
  if (!facts) return {};
  switch (facts->kind) {
    case RecurrentKind::short_convolution:
      return {"conv_L_cache", "conv_bias", facts->attending};
    case RecurrentKind::gated_delta:
      return {"linear_conv_kernel_dim", "linear_num_key_heads",  "linear_num_value_heads",
              "linear_key_head_dim",    "linear_value_head_dim", kPeriod};
    case RecurrentKind::mamba:
      return {
          "mamba_d_conv",      "mamba_conv_bias", "mamba_proj_bias",       "mamba_d_state",         kMambaWidth,
          kMambaExpansion,     kStepRank,         facts->attending_period, facts->attending_offset, facts->attending,
          facts->parts_epsilon};
    case RecurrentKind::mamba2:
      return {"mamba_d_conv", "mamba_conv_bias", "mamba_proj_bias", kOutputBias,  facts->least_step, kMambaGroups,
              kMambaHeads,    kMambaHeadWidth,   "mamba_d_state",   kMambaWidth,  kMambaExpansion,   facts->attending,
              kSteps,         kHasNorm,          kNormsFirst,       kInputFactor, kPartFactors,      kOutputFactor};
  }
  return {};
}

std::vector<std::string_view> gguf_recurrent_keys(const std::optional<RecurrentFacts>& facts) {
  if (!facts) return {};
  if (facts->kind == RecurrentKind::short_convolution) return {"shortconv.l_cache"};
  return {"ssm.conv_kernel", "ssm.group_count", "ssm.time_step_rank",         "ssm.state_size",
          "ssm.inner_size",  kPeriod,           "attention.recurrent_layers", kNormalizesParts};
}

namespace {

// The layers that are recurrent, in each way in which config.json may state them.
void add_layers(const ModelConfig& config, const RecurrentFacts& facts, Json& json) {
  if (facts.has_attention || !config.halves.empty()) return;
  Json words = Json::array(), attending = Json::array();
  for (int layer = 0; layer < config.layer_count; ++layer) {
    words.push_back(config.recurs(layer) ? facts.words[0] : facts.word_of_others);
    if (!config.recurs(layer)) attending.push_back(layer);
  }
  json["layer_types"] = std::move(words);
  if (!facts.attending_period.empty() && !attending.empty()) {
    const std::int64_t first = attending[0];
    json[facts.attending_offset] = first;
    json[facts.attending_period] = attending.size() > 1 ? attending[1].get<std::int64_t>() - first : config.layer_count;
  }
  if (!facts.attending.empty()) json[facts.attending] = std::move(attending);
}

// transformers computes the width by mamba_expand, where config.json has no key for it.
void add_width(const ModelConfig& config, std::int64_t width, Json& json) {
  json[kMambaWidth] = width;
  if (width % config.hidden_size == 0) json[kMambaExpansion] = width / config.hidden_size;
}

Json mamba_json(const ModelConfig& config, const RecurrentFacts& facts) {
  const RecurrentConfig& c = *config.recurrent;
  Json json{{"mamba_d_conv", c.convolution_width},
            {"mamba_conv_bias", c.has_convolution_bias},
            {"mamba_proj_bias", c.has_projection_bias},
            {"mamba_d_state", c.key_dim},
            {kStepRank, c.step_rank}};
  add_width(config, c.value_dim, json);
  if (!facts.parts_epsilon.empty()) json[facts.parts_epsilon] = c.parts_epsilon;
  return json;
}

Json mamba2_json(const ModelConfig& config, const RecurrentFacts& facts) {
  const RecurrentConfig& c = *config.recurrent;
  Json json{{"mamba_d_conv", c.convolution_width},
            {"mamba_conv_bias", c.has_convolution_bias},
            {"mamba_proj_bias", c.has_projection_bias},
            {kMambaGroups, c.key_heads},
            {kMambaHeads, c.value_heads},
            {kMambaHeadWidth, c.value_dim},
            {"mamba_d_state", c.key_dim},
            {kHasNorm, c.has_norm},
            {kNormsFirst, c.norms_before_gate}};
  add_width(config, c.values_width(), json);
  if (c.has_output_bias || c.has_projection_bias) json[kOutputBias] = c.has_output_bias;
  if (!facts.least_step.empty()) json[facts.least_step] = c.least_step;
  return json;
}

}  // namespace

Json recurrent_json(const ModelConfig& config, const RecurrentFacts& facts) {
  const RecurrentConfig& c = config.recurrent.value();
  Json json = Json::object();
  switch (c.kind) {
    case RecurrentKind::short_convolution:
      json = {{"conv_L_cache", c.convolution_width}, {"conv_bias", c.has_convolution_bias}};
      break;
    case RecurrentKind::gated_delta:
      json = {{"linear_conv_kernel_dim", c.convolution_width},
              {"linear_num_key_heads", c.key_heads},
              {"linear_num_value_heads", c.value_heads},
              {"linear_key_head_dim", c.key_dim},
              {"linear_value_head_dim", c.value_dim}};
      break;
    case RecurrentKind::mamba:
      json = mamba_json(config, facts);
      break;
    case RecurrentKind::mamba2:
      json = mamba2_json(config, facts);
      break;
  }
  add_layers(config, facts, json);
  return json;
}

void read_recurrent(const JsonFields& fields, const std::optional<RecurrentFacts>& facts, ModelConfig& config) {
  if (!facts) return;
  std::vector<bool> layers =
      config.halves.empty() ? recurrent_layers(fields, *facts, config.layer_count) : recurrent_halves(config);
  if (!any_of(layers)) return;
  RecurrentConfig recurrent{.kind = facts->kind};
  switch (facts->kind) {
    case RecurrentKind::short_convolution:
      recurrent.convolution_width = needed_integer_in(fields, "conv_L_cache", kTaps);
      recurrent.has_convolution_bias = fields.find_boolean("conv_bias").value_or(false);
      recurrent.has_projection_bias = recurrent.has_convolution_bias;
      break;
    case RecurrentKind::gated_delta:
      read_delta(fields, recurrent);
      break;
    case RecurrentKind::mamba:
      read_mamba(fields, *facts, config, recurrent);
      break;
    case RecurrentKind::mamba2:
      read_mamba2(fields, *facts, config, recurrent);
      break;
  }
  set_layers(std::move(layers), *facts, recurrent, config);
}

void read_recurrent(const GgufFields& fields, const Gguf& gguf, const std::optional<RecurrentFacts>& facts,
                    ModelConfig& config) {
  if (!facts) return;
  std::vector<bool> layers =
      config.halves.empty() ? recurrent_layers(fields, gguf, *facts, config.layer_count) : recurrent_halves(config);
  if (!any_of(layers)) return;
  RecurrentConfig recurrent{.kind = facts->kind};
  const auto first = std::find(layers.begin(), layers.end(), true) - layers.begin();
  const auto has = [&](const char* name) { return gguf.find_tensor(fmt::format("blk.{}.{}", first, name)) != nullptr; };
  if (facts->kind == RecurrentKind::short_convolution) {
    recurrent.convolution_width = needed_integer_in(fields, "shortconv.l_cache", kTaps);
    recurrent.has_convolution_bias = has("shortconv.conv.bias");
    recurrent.has_projection_bias = has("shortconv.in_proj.bias");
  } else {
    if (facts->kind == RecurrentKind::mamba) {
      read_mamba(fields, *facts, config.norm_eps, recurrent);
    } else {
      read_states(fields, recurrent);
    }
    recurrent.has_convolution_bias = has("ssm_conv1d.bias");
    recurrent.has_projection_bias = has("ssm_in.bias");
    recurrent.has_output_bias = has("ssm_out.bias");
    recurrent.has_norm = has("ssm_norm.weight");
    recurrent.least_step = facts->default_least_step;
    recurrent.is_joined = facts->kind == RecurrentKind::gated_delta && has("ssm_in.weight");
  }
  set_layers(std::move(layers), *facts, recurrent, config);
}

}  // namespace weft
