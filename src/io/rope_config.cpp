#include "io/rope_config.h"

#include <algorithm>
#include <array>
#include <cmath>
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
    std::pair{"default", RopeScalingType::none},
    std::pair{"linear", RopeScalingType::linear},
    std::pair{"dynamic", RopeScalingType::dynamic},
    std::pair{"llama3", RopeScalingType::llama3},
    std::pair{"yarn", RopeScalingType::yarn},
    std::pair{"longrope", RopeScalingType::longrope},
    std::pair{"proportional", RopeScalingType::proportional},
};

RopeScalingType scaling_type(std::string_view text, const std::string& name, const std::string& where) {
  if (text == "none") return RopeScalingType::none;
  if (text == "su") return RopeScalingType::longrope;  // its name in the first files
  if (text == "mrope") return RopeScalingType::none;   // for text, all sections have the same position
  std::vector<std::string_view> known;
  for (const auto& [candidate, type] : kRopeScalings) {
    if (candidate == text) return type;
    known.push_back(candidate);
  }
  fail_user("[{}] {} must be one of {}, but is {}", where, name, fmt::join(known, ", "), quote(text));
}

template <class Fields>
void check_rotary_dim(const Fields& fields, std::int64_t head_dim, const RopeConfig& rope, std::string_view key) {
  const auto dim = rope.rotary_dim;
  USER_CHECK(dim >= 2 && dim % 2 == 0 && dim <= head_dim,
             "[{}] {} must make a rotary dim that is even and at most the head's {}, but it is {}", fields.where(),
             fields.name(key), head_dim, dim);
}

// The width of heads in layers without a window, or in all of them.
std::int64_t full_head_dim(const ModelConfig& config) {
  return config.full_head_dim > 0 ? config.full_head_dim : config.head_dim;
}

// The factor of cosines and sines for a context of `factor` times the trained one.
double longrope_magnitude(double factor, std::int64_t original_context_length) {
  return factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original_context_length)));
}

// ---- config.json ----

// What the keys around an object of rotary positions state for it.
struct Around {
  std::optional<double> theta, partial;
  std::int64_t original_context_length = 0;
  bool states_original = false;  // that length; else it is the context's
};

void read_yarn(const JsonFields& fields, RopeScaling& scaling) {
  scaling.beta_fast = real_in(fields, "beta_fast", kPositive).value_or(scaling.beta_fast);
  scaling.beta_slow = real_in(fields, "beta_slow", kPositive).value_or(scaling.beta_slow);
  scaling.truncate = fields.find_boolean("truncate").value_or(true);
  scaling.mscale = real_in(fields, "mscale", {0, 1e6});
  scaling.mscale_all_dim = real_in(fields, "mscale_all_dim", {0, 1e6});
}

void read_llama3(const JsonFields& fields, RopeScaling& scaling) {
  scaling.low_freq_factor = needed_real_in(fields, "low_freq_factor", kPositive);
  scaling.high_freq_factor = needed_real_in(fields, "high_freq_factor", kPositive);
  USER_CHECK(scaling.high_freq_factor >= scaling.low_freq_factor, "[{}] {} must be at least {} {}, but is {}",
             fields.where(), fields.name("high_freq_factor"), fields.name("low_freq_factor"), scaling.low_freq_factor,
             scaling.high_freq_factor);
}

std::vector<double> frequency_factors(const JsonFields& fields, const char* key) {
  const Json* list = fields.value(key);
  USER_CHECK(list != nullptr && list->is_array() && !list->empty(), "[{}] {} must be a list of numbers, but is {}",
             fields.where(), fields.name(key), list == nullptr ? "missing" : shown_json(*list));
  std::vector<double> factors;
  for (const Json& factor : *list) {
    USER_CHECK(factor.is_number() && factor.get<double>() > 0, "[{}] {} must be above 0, but has {}", fields.where(),
               fields.name(key), shown_json(factor));
    factors.push_back(factor.get<double>());
  }
  return factors;
}

void read_longrope(const JsonFields& fields, std::int64_t context_length, RopeScaling& scaling) {
  scaling.short_factors = frequency_factors(fields, "short_factor");
  scaling.long_factors = frequency_factors(fields, "long_factor");
  const auto original = static_cast<double>(scaling.original_context_length);
  scaling.factor = real_in(fields, "factor", kFactors).value_or(static_cast<double>(context_length) / original);
  if (!scaling.attention_factor)
    scaling.attention_factor = longrope_magnitude(scaling.factor, scaling.original_context_length);
  scaling.short_magnitude = real_in(fields, "short_mscale", kPositive);
  scaling.long_magnitude = real_in(fields, "long_mscale", kPositive);
}

// The keys that mean the same with each type. All others are about one type, and would have no effect without it.
constexpr std::string_view kKeysOfAllTypes[] = {"finetuned",     "llama_4_scaling_beta",  "max_position_embeddings",
                                                "mrope_section", "partial_rotary_factor", "rope_theta",
                                                "attn_factor",   "extrapolation_factor",  "mrope_interleaved"};

void check_keys_without_type(const JsonFields& fields) {
  for (const auto& key : fields.keys())
    USER_CHECK(std::find(std::begin(kKeysOfAllTypes), std::end(kKeysOfAllTypes), key) != std::end(kKeysOfAllTypes),
               "[{}] wanted {}, since there is {}, but there is none", fields.where(), fields.name("rope_type"),
               fields.name(key));
}

RopeScaling scaling_from_json(const JsonFields& fields, const Around& around, std::int64_t context_length) {
  RopeScaling scaling;
  bool has_type = false;
  for (const auto key : {"rope_type", "type"})
    if (const auto text = fields.find_text(key); text && !has_type) {
      scaling.type = scaling_type(*text, fields.name(key), fields.where());
      has_type = true;
    }
  if (!has_type) check_keys_without_type(fields);
  const auto original = integer_in(fields, "original_max_position_embeddings", kContexts);
  scaling.original_context_length =
      around.states_original ? around.original_context_length : original.value_or(around.original_context_length);
  using enum RopeScalingType;
  if (scaling.type == none) return scaling;
  scaling.attention_factor = real_in(fields, "attention_factor", kPositive);
  if (scaling.type == dynamic) {
    scaling.alpha = real_in(fields, "alpha", kPositive);
    scaling.original_context_length = context_length;  // as in transformers, which reads no other length here
  }
  if (scaling.type == proportional) {
    scaling.rotated_part = real_in(fields, "partial_rotary_factor", {0, 1}).value_or(1);
    scaling.factor = real_in(fields, "factor", kFactors).value_or(1);
  } else if (scaling.type == longrope) {
    read_longrope(fields, context_length, scaling);
  } else if (scaling.type == yarn && !fields.has("factor")) {
    scaling.factor = static_cast<double>(context_length) / static_cast<double>(scaling.original_context_length);
  } else if (!scaling.alpha) {
    scaling.factor = needed_real_in(fields, "factor", kFactors);
  }
  if (scaling.type == llama3) read_llama3(fields, scaling);
  if (scaling.type == yarn) read_yarn(fields, scaling);
  return scaling;
}

void check_factor_counts(const JsonFields& fields, const RopeConfig& rope) {
  const auto wanted = static_cast<std::size_t>(rope.rotary_dim / 2);
  const auto check = [&](const char* key, const std::vector<double>& factors) {
    USER_CHECK(factors.empty() || factors.size() == wanted, "[{}] {} must have {} numbers, but has {}", fields.where(),
               fields.name(key), wanted, factors.size());
  };
  check("short_factor", rope.scaling.short_factors);
  check("long_factor", rope.scaling.long_factors);
}

RopeConfig rope_from_json(const JsonFields& fields, const Around& around, std::int64_t context_length,
                          std::int64_t head_dim) {
  RopeConfig rope;
  rope.scaling = scaling_from_json(fields, around, context_length);
  const auto theta = real_in(fields, "rope_theta", kThetas);
  auto partial = real_in(fields, "partial_rotary_factor", {0, 1});
  if (!partial) partial = around.partial;
  const bool is_whole = rope.scaling.type == RopeScalingType::proportional || !partial;
  rope.theta = theta ? *theta : around.theta.value_or(rope.theta);
  rope.rotary_dim = is_whole ? head_dim : static_cast<std::int64_t>(static_cast<double>(head_dim) * *partial);
  check_rotary_dim(fields, head_dim, rope, is_whole ? "head_dim" : "partial_rotary_factor");
  check_factor_counts(fields, rope);
  rope.query_scale_beta = real_in(fields, "llama_4_scaling_beta", {0, 1e6}).value_or(0);
  if (rope.scaling.original_context_length == 0) rope.scaling.original_context_length = around.original_context_length;
  return rope;
}

// The length of the context that the scaling makes of the trained one.
std::int64_t extended_by(const RopeScaling& scaling) {
  const double length = static_cast<double>(scaling.original_context_length) * scaling.factor;
  return std::min(std::llround(length), static_cast<long long>(kContexts.greatest));
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
  USER_CHECK(scaling.type != longrope && scaling.type != proportional, "[{}] {} {} wants {}, but there is none",
             fields.where(), fields.name("rope.scaling.type"), rope_scaling_text(scaling.type), kLongFactors);
  if (scaling.type == none) return scaling;
  scaling.factor =
      has_factor ? needed_real_in(fields, key, kFactors) : needed_real_in(fields, "rope.scaling.factor", kFactors);
  scaling.original_context_length =
      integer_in(fields, "rope.scaling.original_context_length", kContexts).value_or(context_length);
  if (scaling.type != yarn) return scaling;
  scaling.beta_fast = real_in(fields, "rope.scaling.yarn_beta_fast", kPositive).value_or(scaling.beta_fast);
  scaling.beta_slow = real_in(fields, "rope.scaling.yarn_beta_slow", kPositive).value_or(scaling.beta_slow);
  // Converters write 1 for a factor that follows from the scaling.
  const auto magnitude = real_in(fields, "rope.scaling.yarn_attn_factor", kPositive);
  if (magnitude && *magnitude != 1) scaling.attention_factor = magnitude;
  scaling.mscale = scaling.mscale_all_dim = real_in(fields, "rope.scaling.yarn_log_multiplier", {0, 1e6});
  if (const auto mixture = fields.find_real("rope.scaling.yarn_ext_factor"))
    USER_CHECK(*mixture == 1, "[{}] {} must be 1: others are not supported yet, but is {}", fields.where(),
               fields.name("rope.scaling.yarn_ext_factor"), *mixture);
  return scaling;
}

// Checks that the metadata ask for nothing else beside the tensors of longrope. Files of most architectures name no
// type then. llama.cpp divides by a factor, too, and 0 and 1 change nothing there.
void check_longrope_alone(const GgufFields& fields, const Gguf& gguf) {
  const std::string cause = fmt::format("since there is {}", kLongFactors);
  if (const auto text = fields.find_text("rope.scaling.type"))
    USER_CHECK(scaling_type(*text, fields.name("rope.scaling.type"), fields.where()) == RopeScalingType::longrope,
               "[{}] {} must be longrope, {}, but is {}", fields.where(), fields.name("rope.scaling.type"), cause,
               quote(*text));
  for (const auto key : {"rope.scaling.factor", "rope.scale_linear"})
    if (const auto factor = fields.find_real(key))
      USER_CHECK(*factor == 0 || *factor == 1, "[{}] {} must be 0 or 1, {}, but is {}", fields.where(),
                 fields.name(key), cause, *factor);
  USER_CHECK(gguf.find_tensor(kFrequencyFactors) == nullptr,
             "[{}] has {} and {}: both divide the frequencies of rotary positions, and files have one of them",
             fields.where(), kFrequencyFactors, kLongFactors);
}

RopeScaling longrope_from_gguf(const GgufFields& fields, std::int64_t context_length) {
  RopeScaling scaling{.type = RopeScalingType::longrope};
  scaling.original_context_length =
      integer_in(fields, "rope.scaling.original_context_length", kContexts).value_or(context_length);
  scaling.factor = static_cast<double>(context_length) / static_cast<double>(scaling.original_context_length);
  scaling.attention_factor = real_in(fields, "rope.scaling.attn_factor", kPositive)
                                 .value_or(longrope_magnitude(scaling.factor, scaling.original_context_length));
  return scaling;
}

RopeConfig without_scaling(RopeConfig rope, std::optional<double> theta) {
  rope.scaling = {};
  rope.frequency_factors = "";
  if (theta) rope.theta = *theta;
  return rope;
}

}  // namespace

void read_rope(const JsonFields& fields, const ArchitectureFacts& facts, ModelConfig& config) {
  if (facts.first_position_row || facts.rotary.is_absent) return;
  const auto length = integer_in(fields, "original_max_position_embeddings", kContexts);
  Around around{real_in(fields, "rope_theta", kThetas), real_in(fields, "partial_rotary_factor", {0, 1}),
                length.value_or(config.context_length), length.has_value()};
  if (const auto width = integer_in(fields, facts.rotary.width, kHeadDims); width && !around.partial)
    around.partial = static_cast<double>(*width) / static_cast<double>(config.head_dim);
  const bool has_sliding = facts.rotary.has_sliding_positions && config.sliding_window;
  std::optional<RopeConfig> whole, sliding;
  std::int64_t extended_length = 0;
  // The older key counts where a file has both.
  for (const auto key : {"rope_scaling", "rope_parameters"}) {
    const auto inner = fields.find_object(key);
    if (!inner || fields.value(key)->empty()) continue;
    if (std::string_view(key) == "rope_scaling" && fields.has("rope_parameters"))
      config.warnings.push_back(fmt::format("[{}] {} is not read, because there is {}, too", fields.where(),
                                            fields.name("rope_parameters"), fields.name(key)));
    const auto read = [&](const JsonFields& object, const Json& json, std::int64_t head_dim) {
      for (auto& unknown : unknown_keys(KeyTable::rope, json, fields.where(), object.name(""), facts.keys))
        config.unknown_keys.push_back(std::move(unknown));
      RopeConfig rope = rope_from_json(object, around, config.context_length, head_dim);
      if (rope.scaling.type == RopeScalingType::yarn && object.has("original_max_position_embeddings"))
        extended_length = std::max(extended_length, extended_by(rope.scaling));
      return rope;
    };
    for (const auto& [name, value] : fields.value(key)->items()) {
      const bool is_kind = name == "full_attention" || name == "sliding_attention";
      USER_CHECK(value.is_object() || value.is_null() || !is_kind, "[{}] {} must be an object, but is {}",
                 fields.where(), inner->name(name), shown_json(value));
      if (!value.is_object()) continue;
      USER_CHECK(facts.rotary.has_sliding_positions && is_kind,
                 "[{}] {} is set per kind of layer, which is not supported", fields.where(), quote(inner->name(name)));
      const bool is_full = name == "full_attention";
      (is_full ? whole : sliding) = read(JsonFields(value, fields.where(), inner->name(name) + "."), value,
                                         is_full ? full_head_dim(config) : config.head_dim);
    }
    if (!whole && !sliding) whole = read(*inner, *fields.value(key), full_head_dim(config));
    break;
  }
  const Json none = Json::object();
  config.rope =
      whole ? *whole
            : rope_from_json(JsonFields(none, fields.where()), around, config.context_length, full_head_dim(config));
  config.rope.pairing = facts.pairing_in_folders;
  config.rope.is_reversed = facts.rotary.is_reversed;
  // Users add the scaling to a config.json whose max_position_embeddings is the trained length (vLLM does the same).
  config.context_length = std::max(config.context_length, extended_length);
  if (!has_sliding) return;
  if (!sliding) {
    sliding = without_scaling(config.rope, real_in(fields, "rope_local_base_freq", kThetas));
    if (config.full_head_dim > 0) sliding->rotary_dim = config.head_dim;
    check_rotary_dim(fields, config.head_dim, *sliding, "head_dim");
  }
  config.sliding_rope = std::move(sliding);
  config.sliding_rope->pairing = config.rope.pairing;
}

void read_rope(const GgufFields& fields, const Gguf& gguf, const ArchitectureFacts& facts, ModelConfig& config) {
  if (facts.first_position_row || facts.rotary.is_absent) return;
  auto& rope = config.rope;
  rope.theta = real_in(fields, "rope.freq_base", kThetas).value_or(rope.theta);
  rope.rotary_dim = fields.find_integer("rope.dimension_count").value_or(full_head_dim(config));
  check_rotary_dim(fields, full_head_dim(config), rope, "rope.dimension_count");
  rope.pairing = facts.pairing_in_gguf;
  rope.is_reversed = facts.rotary.is_reversed;
  const bool is_longrope = gguf.find_tensor(kLongFactors) != nullptr && gguf.find_tensor(kShortFactors) != nullptr;
  if (is_longrope) check_longrope_alone(fields, gguf);
  rope.scaling = is_longrope ? longrope_from_gguf(fields, config.context_length)
                             : scaling_from_gguf(fields, config.context_length);
  if (const auto factor = fields.find_real("rope.scaling.attn_factor"); factor && !is_longrope)
    USER_CHECK(*factor == 1, "[{}] {} must be 1 without {}, but is {}", fields.where(),
               fields.name("rope.scaling.attn_factor"), kLongFactors, *factor);
  if (gguf.find_tensor(kFrequencyFactors) != nullptr) rope.frequency_factors = kFrequencyFactors;
  rope.query_scale_beta = real_in(fields, "attention.temperature_scale", {0, 1e6}).value_or(0);
  if (rope.scaling.original_context_length == 0) rope.scaling.original_context_length = config.context_length;
  if (!facts.rotary.has_sliding_positions || !config.sliding_window) return;
  const auto theta = real_in(fields, "rope.freq_base_swa", kThetas);
  config.sliding_rope = without_scaling(rope, theta ? theta : facts.rotary.sliding_theta);
  if (config.full_head_dim == 0 && !fields.has("rope.dimension_count_swa")) return;
  config.sliding_rope->rotary_dim = fields.find_integer("rope.dimension_count_swa").value_or(config.head_dim);
  check_rotary_dim(fields, config.head_dim, *config.sliding_rope, "rope.dimension_count_swa");
}

std::string_view rope_scaling_text(RopeScalingType type) {
  for (const auto& [text, candidate] : kRopeScalings)
    if (candidate == type) return text;
  return "";
}

}  // namespace weft
