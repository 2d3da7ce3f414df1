#include "io/generation_config.h"

#include <cmath>

#include "base/error.h"
#include "io/config_fields.h"
#include "io/known_keys.h"

namespace weft {
namespace {

// Reads a whole number. Some files write it with a fraction: 50.0.
std::optional<std::int64_t> whole_in(const JsonFields& fields, std::string_view key, Range<std::int64_t> range) {
  const auto value = real_in(fields, key, {static_cast<double>(range.least), static_cast<double>(range.greatest)});
  if (!value) return std::nullopt;
  USER_CHECK(*value == std::floor(*value), "[{}] {} must be a whole number, but is {}", fields.where(),
             fields.name(key), *value);
  return static_cast<std::int64_t>(*value);
}

}  // namespace

GenerationConfig generation_config_from_json(std::string_view text, const std::string& where,
                                             std::span<const std::string_view> overridden) {
  auto json = parse_config_json(text, where);
  for (const std::string_view key : overridden) json.erase(std::string(key));
  const JsonFields fields(json, where);
  GenerationConfig config;
  config.unknown_keys = unknown_keys(KeyTable::generation_config, json, where);
  config.do_sample = fields.find_boolean("do_sample");
  config.temperature = real_in(fields, "temperature", {0, 100});
  config.top_k = whole_in(fields, "top_k", {-1, INT32_MAX});
  config.top_p = real_in(fields, "top_p", {1e-9, 1});
  config.min_p = real_in(fields, "min_p", {0, 1});
  config.repetition_penalty = real_in(fields, "repetition_penalty", {1e-3, 1e3});
  config.max_new_tokens = whole_in(fields, "max_new_tokens", {1, INT32_MAX});
  config.eos_token_ids = fields.find_integers("eos_token_id");
  return config;
}

}  // namespace weft
