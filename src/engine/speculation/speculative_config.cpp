#include "engine/speculation/speculative_config.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::int64_t kMostProposed = 64, kMostLookedUp = 1024, kMostContext = std::int64_t{1} << 30;
constexpr const char* kWhere = "--speculative-config";
constexpr std::string_view kKeysOfNgram[] = {"method", "num_speculative_tokens", "prompt_lookup_max",
                                             "prompt_lookup_min"};
constexpr std::string_view kKeysOfModel[] = {"method", "num_speculative_tokens", "model", "max_model_len",
                                             "draft_tensor_parallel_size"};

template <std::size_t size>
void check_keys(const Json& json, const std::string& method, const std::string_view (&keys)[size]) {
  for (const auto& [key, value] : json.items())
    USER_CHECK(std::find(std::begin(keys), std::end(keys), key) != std::end(keys),
               "[{}] has {}, which method {} does not read; its keys are {}", kWhere, quote(key), quote(method),
               fmt::join(keys, ", "));
}

std::int64_t count_of(const Json& json, const char* key, std::int64_t least, std::int64_t most) {
  const Json& value = json.at(key);
  USER_CHECK(value.is_number_integer() && value >= least && value <= most,
             "[{}] {} must be a whole number from {} to {}, but is {}", kWhere, key, least, most, json_text(value));
  return value.get<std::int64_t>();
}

void read_ngram(const Json& json, SpeculativeConfig& config) {
  const bool has_least = json.contains("prompt_lookup_min"), has_most = json.contains("prompt_lookup_max");
  if (has_least) config.prompt_lookup_min = count_of(json, "prompt_lookup_min", 1, kMostLookedUp);
  if (has_most) config.prompt_lookup_max = count_of(json, "prompt_lookup_max", 1, kMostLookedUp);
  if (has_least && !has_most) config.prompt_lookup_max = config.prompt_lookup_min;
  if (has_most && !has_least) config.prompt_lookup_min = config.prompt_lookup_max;
  USER_CHECK(config.prompt_lookup_min <= config.prompt_lookup_max,
             "[{}] prompt_lookup_min must be at most prompt_lookup_max, {}, but is {}", kWhere,
             config.prompt_lookup_max, config.prompt_lookup_min);
}

void read_draft_model(const Json& json, SpeculativeConfig& config) {
  const Json model = json.value("model", Json(nullptr));
  USER_CHECK(model.is_string() && !model.get<std::string>().empty(),
             "[{}] model must be the text that names a model, but is {}", kWhere, json_text(model));
  config.model = model.get<std::string>();
  if (json.contains("max_model_len")) config.max_model_len = count_of(json, "max_model_len", 1, kMostContext);
  if (json.contains("draft_tensor_parallel_size")) count_of(json, "draft_tensor_parallel_size", 1, 1);
}

}  // namespace

SpeculativeConfig speculative_config(const std::string& text) {
  SpeculativeConfig config;
  if (text.empty()) return config;
  const Json json = parse_json(text);
  USER_CHECK(json.is_object(), "[{}] must be a JSON object, but is {}", kWhere, quote(text));
  if (json.empty()) return config;
  const Json method = json.value("method", Json(json.contains("model") ? "draft_model" : ""));
  const bool has_model = method == "draft_model";
  USER_CHECK(has_model || method == "ngram",
             "[{}] method must be \"ngram\" or \"draft_model\" (no other is implemented), but is {}", kWhere,
             json_text(method));
  if (has_model)
    check_keys(json, "draft_model", kKeysOfModel);
  else
    check_keys(json, "ngram", kKeysOfNgram);
  USER_CHECK(json.contains("num_speculative_tokens"), "[{}] lacks num_speculative_tokens", kWhere);
  config.num_speculative_tokens = count_of(json, "num_speculative_tokens", 1, kMostProposed);
  if (has_model)
    read_draft_model(json, config);
  else
    read_ngram(json, config);
  return config;
}

SpeculativeConfig speculative_config(const Options& options) {
  SpeculativeConfig config = speculative_config(options.speculative_config);
  if (options.draft_model.empty()) return config;
  USER_CHECK(config.num_speculative_tokens == 0, "[--draft-model] excludes --speculative-config");
  config.model = options.draft_model;
  config.num_speculative_tokens = options.num_draft_tokens;
  return config;
}

}  // namespace weft
