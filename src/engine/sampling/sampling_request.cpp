#include "engine/sampling/sampling_request.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "io/config_fields.h"

namespace weft {
namespace {

constexpr std::string_view kLength = "max_new_tokens";
constexpr std::string_view kKeys[] = {kLength, "temperature", "top_k", "top_p", "min_p", "repetition_penalty"};
constexpr const char* kOverrides = "--override-generation-config";
constexpr std::size_t kMostBytes = 1u << 20;

bool is_without_file(const GenerationConfigSource& source) { return source.from == "none" || source.from == "vllm"; }

std::string file_of(const GenerationConfigSource& source) { return source.from + "/generation_config.json"; }

// The keys that the overrides have.
std::vector<std::string_view> overridden_keys(const GenerationConfigSource& source) {
  std::vector<std::string_view> keys;
  if (source.overrides.empty()) return keys;
  const Json json = parse_config_json(source.overrides, kOverrides);
  for (const auto& [key, value] : json.items()) {
    const auto known = std::find(std::begin(kKeys), std::end(kKeys), key);
    USER_CHECK(known != std::end(kKeys),
               "[{}] may have temperature, top_k, top_p, min_p, repetition_penalty and max_new_tokens, but has {}",
               kOverrides, quote(key));
    if (!value.is_null()) keys.push_back(*known);
  }
  return keys;
}

// The keys in `overridden` are not looked at: whatever is wrong with them, the model runs.
GenerationConfig file_config(const GenerationConfigSource& source, const Checkpoint& checkpoint,
                             std::span<const std::string_view> overridden) {
  if (is_without_file(source)) return {};
  try {
    if (source.from == "auto") return checkpoint.generation_config(overridden);
    const std::string file = file_of(source);
    return generation_config_from_json(read_file(file, kMostBytes), file, overridden);
  } catch (const UserError& error) {
    fail_user("{}; --generation-config none runs the model without this file", error.what());
  }
}

GenerationConfig overrides_of(const GenerationConfigSource& source) {
  if (source.overrides.empty()) return {};
  return generation_config_from_json(source.overrides, kOverrides);
}

}  // namespace

void GenerationConfigSource::check() const {
  overridden_keys(*this);
  overrides_of(*this);
  if (from == "auto" || is_without_file(*this)) return;
  std::error_code ignored;
  USER_CHECK(std::filesystem::is_regular_file(file_of(*this), ignored),
             "[--generation-config] must be auto, none, vllm or a folder with generation_config.json, but is {}",
             quote(from));
}

bool SamplingRequest::has_given(std::string_view key) const {
  return std::find(given.begin(), given.end(), key) != given.end();
}

void SamplingRequest::take_given(SamplingParameters& target) const {
  const auto take = [&](std::string_view key, auto SamplingParameters::*field) {
    if (has_given(key)) target.*field = parameters.*field;
  };
  take("temperature", &SamplingParameters::temperature);
  take("top_k", &SamplingParameters::top_k);
  take("top_p", &SamplingParameters::top_p);
  take("min_p", &SamplingParameters::min_p);
  take("repetition_penalty", &SamplingParameters::repetition_penalty);
  take("frequency_penalty", &SamplingParameters::frequency_penalty);
  take("presence_penalty", &SamplingParameters::presence_penalty);
}

SamplingParameters sampling_parameters(const SamplingRequest& request, const Checkpoint& checkpoint, const Log& log) {
  request.config.check();
  std::vector<std::string_view> unread = overridden_keys(request.config);
  unread.insert(unread.end(), request.given.begin(), request.given.end());
  unread.push_back(kLength);
  const GenerationConfig file = file_config(request.config, checkpoint, unread);
  log_unknown_keys(
      log, request.config.from == "auto" ? checkpoint.path() + "/generation_config.json" : file_of(request.config),
      file.unknown_keys);
  const SamplingParameters configured = sampling_of(file, request.parameters);
  const GenerationConfig overrides = overrides_of(request.config);
  // Also where the file recommends greedy sampling.
  SamplingParameters parameters = sampling_of(overrides, configured);
  if (overrides.max_new_tokens && !request.has_given(kLength)) parameters.max_tokens = *overrides.max_new_tokens;
  request.take_given(parameters);
  parameters.check();
  return parameters;
}

AnswerLimits answer_limits(const SamplingRequest& defaults, const Checkpoint& checkpoint) {
  const GenerationConfigSource& source = defaults.config;
  source.check();
  const std::span<const std::string_view> others = std::span(kKeys).subspan(1);
  const std::optional<std::int64_t> of_file = file_config(source, checkpoint, others).max_new_tokens;
  const std::optional<std::int64_t> given = overrides_of(source).max_new_tokens;
  return {.unasked = defaults.has_given(kLength) ? std::optional(defaults.parameters.max_tokens) : std::nullopt,
          .usual = given ? given : of_file,
          .most = given || source.from == "auto" ? given : of_file};
}

}  // namespace weft
