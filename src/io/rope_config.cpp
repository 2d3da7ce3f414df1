#include "io/rope_config.h"

#include <array>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/known_keys.h"

namespace weft {
namespace {

constexpr Range<double> kThetas = {1, 1e15};
constexpr Range<double> kFactors = {1, 1e6};
constexpr Range<double> kPositive = {1e-6, 1e6};

constexpr std::array kRopeScalings = {
    std::pair{"default", RopeScalingType::none},    std::pair{"linear", RopeScalingType::linear},
    std::pair{"dynamic", RopeScalingType::dynamic}, std::pair{"llama3", RopeScalingType::llama3},
    std::pair{"yarn", RopeScalingType::yarn},
};

RopeScalingType scaling_type(std::string_view text, const std::string& name, const std::string& where) {
  if (text == "none") return RopeScalingType::none;
  std::vector<std::string_view> known;
  for (const auto& [candidate, type] : kRopeScalings) {
    if (candidate == text) return type;
    known.push_back(candidate);
  }
  fail_user("[{}] {} must be one of {}, but is {}", where, name, fmt::join(known, ", "), quote(text));
}

template <class Fields>
void check_rotary_dim(const Fields& fields, const ModelConfig& config, std::string_view key) {
  const auto dim = config.rope.rotary_dim;
  USER_CHECK(dim >= 2 && dim % 2 == 0 && dim <= config.head_dim,
             "[{}] {} must make a rotary dim that is even and at most the head's {}, but it is {}", fields.where(),
             fields.name(key), config.head_dim, dim);
}

// ---- config.json ----

RopeScaling scaling_from_json(const JsonFields& fields, std::int64_t context_length) {
  RopeScaling scaling;
  bool has_type = false;
  for (const auto key : {"rope_type", "type"})
    if (const auto text = fields.find_text(key); text && !has_type) {
      scaling.type = scaling_type(*text, fields.name(key), fields.where());
      has_type = true;
    }
  if (!has_type)
    for (const auto key : {"factor", "alpha", "low_freq_factor", "high_freq_factor", "mscale", "attention_factor"})
      USER_CHECK(!fields.has(key), "[{}] wanted {}, since there is {}, but there is none", fields.where(),
                 fields.name("rope_type"), fields.name(key));
  using enum RopeScalingType;
  if (scaling.type == none) return scaling;
  scaling.original_context_length = context_length;
  if (const auto length = integer_in(fields, "original_max_position_embeddings", kContexts))
    scaling.original_context_length = *length;
  if (scaling.type == dynamic) scaling.alpha = real_in(fields, "alpha", kPositive);
  if (!scaling.alpha) scaling.factor = needed_real_in(fields, "factor", kFactors);
  if (scaling.type == llama3) {
    needed_integer_in(fields, "original_max_position_embeddings", kContexts);
    scaling.low_freq_factor = needed_real_in(fields, "low_freq_factor", kPositive);
    scaling.high_freq_factor = needed_real_in(fields, "high_freq_factor", kPositive);
    USER_CHECK(scaling.high_freq_factor > scaling.low_freq_factor, "[{}] {} must be above {} {}, but is {}",
               fields.where(), fields.name("high_freq_factor"), fields.name("low_freq_factor"), scaling.low_freq_factor,
               scaling.high_freq_factor);
  }
  if (scaling.type == yarn) {
    scaling.beta_fast = real_in(fields, "beta_fast", kPositive).value_or(scaling.beta_fast);
    scaling.beta_slow = real_in(fields, "beta_slow", kPositive).value_or(scaling.beta_slow);
    scaling.truncate = fields.find_boolean("truncate").value_or(true);
    scaling.attention_factor = real_in(fields, "attention_factor", kPositive);
    scaling.mscale = real_in(fields, "mscale", {0, 1e6});
    scaling.mscale_all_dim = real_in(fields, "mscale_all_dim", {0, 1e6});
  }
  return scaling;
}

// ---- GGUF ----

// Follows llama.cpp: a factor without a type means linear, a factor of 0 means none, and the oldest files use another
// key.
RopeScaling scaling_from_gguf(const GgufFields& fields, std::int64_t context_length) {
  RopeScaling scaling;
  using enum RopeScalingType;
  const char* const key = fields.has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  const bool has_factor = fields.find_real(key).value_or(0) != 0;
  if (const auto text = fields.find_text("rope.scaling.type")) {
    scaling.type = scaling_type(*text, fields.name("rope.scaling.type"), fields.where());
  } else if (has_factor) {
    scaling.type = linear;
  }
  if (scaling.type == none) return scaling;
  scaling.factor =
      has_factor ? needed_real_in(fields, key, kFactors) : needed_real_in(fields, "rope.scaling.factor", kFactors);
  scaling.original_context_length =
      integer_in(fields, "rope.scaling.original_context_length", kContexts).value_or(context_length);
  if (scaling.type != yarn) return scaling;
  scaling.beta_fast = real_in(fields, "rope.scaling.yarn_beta_fast", kPositive).value_or(scaling.beta_fast);
  scaling.beta_slow = real_in(fields, "rope.scaling.yarn_beta_slow", kPositive).value_or(scaling.beta_slow);
  for (const auto factor :
       {"rope.scaling.yarn_attn_factor", "rope.scaling.yarn_ext_factor", "rope.scaling.yarn_log_multiplier"})
    if (const auto value = fields.find_real(factor))
      USER_CHECK(*value == 1, "[{}] {} must be 1: others are not supported yet, but is {}", fields.where(),
                 fields.name(factor), *value);
  return scaling;
}

}  // namespace

void read_rope(const JsonFields& fields, const ArchitectureFacts& facts, ModelConfig& config) {
  config.rope.pairing = facts.pairing_in_folders;
  auto theta = real_in(fields, "rope_theta", kThetas);
  auto partial = real_in(fields, "partial_rotary_factor", {0, 1});
  for (const auto key : {"rope_parameters", "rope_scaling"}) {
    const auto inner = fields.find_object(key);
    if (!inner) continue;
    for (const auto& [name, value] : fields.value(key)->items())
      USER_CHECK(!value.is_object(), "[{}] {} is set per kind of layer, which is not supported", fields.where(),
                 quote(inner->name(name)));
    for (auto& key : unknown_keys(KeyTable::rope, *fields.value(key), fields.where(), inner->name("")))
      config.unknown_keys.push_back(std::move(key));
    if (const auto own = real_in(*inner, "rope_theta", kThetas)) theta = own;
    if (const auto own = real_in(*inner, "partial_rotary_factor", {0, 1})) partial = own;
    config.rope.scaling = scaling_from_json(*inner, config.context_length);
    break;
  }
  config.rope.theta = theta.value_or(config.rope.theta);
  config.rope.rotary_dim = static_cast<std::int64_t>(static_cast<double>(config.head_dim) * partial.value_or(1));
  check_rotary_dim(fields, config, partial ? "partial_rotary_factor" : "head_dim");
}

void read_rope(const GgufFields& fields, const Gguf& gguf, const ArchitectureFacts& facts, ModelConfig& config) {
  auto& rope = config.rope;
  rope.theta = real_in(fields, "rope.freq_base", kThetas).value_or(rope.theta);
  rope.rotary_dim = fields.find_integer("rope.dimension_count").value_or(config.head_dim);
  check_rotary_dim(fields, config, "rope.dimension_count");
  rope.pairing = facts.pairing_in_gguf;
  rope.scaling = scaling_from_gguf(fields, config.context_length);
  if (gguf.find_tensor(kFrequencyFactors) != nullptr) rope.frequency_factors = kFrequencyFactors;
}

std::string_view rope_scaling_text(RopeScalingType type) {
  for (const auto& [text, candidate] : kRopeScalings)
    if (candidate == type) return text;
  return "";
}

}  // namespace weft
