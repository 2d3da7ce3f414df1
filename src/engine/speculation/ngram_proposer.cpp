#include "engine/speculation/ngram_proposer.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace weft {
namespace {

// A step that computes a few rows more costs up to half as much again on a CPU, so proposals pay while about a fifth
// of their tokens is kept. A sequence whose proposals fail is tried again after pauses of twice the length each.
constexpr double kLeastKeptShare = 0.2, kWeightOfLast = 0.25;
constexpr std::int64_t kFirstPause = 8, kLongestPause = 256;

constexpr std::int64_t kMostProposed = 64, kMostLookedUp = 1024;
constexpr const char* kWhere = "--speculative-config";
constexpr std::string_view kSpeculativeKeys[] = {"method", "num_speculative_tokens", "prompt_lookup_max",
                                                 "prompt_lookup_min"};

std::int64_t count_of(const Json& json, const char* key, std::int64_t least, std::int64_t most) {
  const Json& value = json.at(key);
  USER_CHECK(value.is_number_integer() && value >= least && value <= most,
             "[{}] {} must be a whole number from {} to {}, but is {}", kWhere, key, least, most, json_text(value));
  return value.get<std::int64_t>();
}

}  // namespace

SpeculativeConfig speculative_config(const std::string& text) {
  SpeculativeConfig config;
  if (text.empty()) return config;
  const Json json = parse_json(text);
  USER_CHECK(json.is_object(), "[{}] must be a JSON object, but is {}", kWhere, quote(text));
  if (json.empty()) return config;
  for (const auto& [key, value] : json.items())
    USER_CHECK(std::find(std::begin(kSpeculativeKeys), std::end(kSpeculativeKeys), key) != std::end(kSpeculativeKeys),
               "[{}] has {}, which is not read; the keys are {}", kWhere, quote(key),
               fmt::join(kSpeculativeKeys, ", "));
  const Json method = json.value("method", Json(nullptr));
  USER_CHECK(method == "ngram", "[{}] method must be \"ngram\" (the only method that is implemented), but is {}",
             kWhere, json_text(method));
  USER_CHECK(json.contains("num_speculative_tokens"), "[{}] lacks num_speculative_tokens", kWhere);
  config.num_speculative_tokens = count_of(json, "num_speculative_tokens", 1, kMostProposed);
  const bool has_least = json.contains("prompt_lookup_min"), has_most = json.contains("prompt_lookup_max");
  if (has_least) config.prompt_lookup_min = count_of(json, "prompt_lookup_min", 1, kMostLookedUp);
  if (has_most) config.prompt_lookup_max = count_of(json, "prompt_lookup_max", 1, kMostLookedUp);
  if (has_least && !has_most) config.prompt_lookup_max = config.prompt_lookup_min;
  if (has_most && !has_least) config.prompt_lookup_min = config.prompt_lookup_max;
  USER_CHECK(config.prompt_lookup_min <= config.prompt_lookup_max,
             "[{}] prompt_lookup_min must be at most prompt_lookup_max, {}, but is {}", kWhere,
             config.prompt_lookup_max, config.prompt_lookup_min);
  return config;
}

void NgramProposer::propose(std::span<const int> prompt, std::span<const int> output, std::int64_t most,
                            std::vector<int>& proposal) {
  proposal.clear();
  most = std::min(most, config_.num_speculative_tokens);
  if (most <= 0) return;
  if (pause_ > 0) {
    --pause_;
    return;
  }
  const auto size = static_cast<std::int64_t>(prompt.size() + output.size());
  const auto token = [&](std::int64_t at) {
    const auto i = static_cast<std::size_t>(at);
    return i < prompt.size() ? prompt[i] : output[i - prompt.size()];
  };
  std::int64_t longest = config_.prompt_lookup_min - 1, found = 0;
  for (std::int64_t end = config_.prompt_lookup_min; end < size && longest < config_.prompt_lookup_max; ++end) {
    std::int64_t same = 0;
    while (same < std::min(end, config_.prompt_lookup_max) && token(end - 1 - same) == token(size - 1 - same)) ++same;
    if (same <= longest) continue;
    longest = same;
    found = end;
  }
  if (found == 0) return;
  for (std::int64_t at = found; at < std::min(size, found + most); ++at) proposal.push_back(token(at));
}

void NgramProposer::report(std::size_t proposed, std::size_t kept) {
  const double share = static_cast<double>(kept) / static_cast<double>(proposed);
  kept_share_ += kWeightOfLast * (share - kept_share_);
  if (kept_share_ >= kLeastKeptShare) {
    next_pause_ = 0;
    return;
  }
  next_pause_ = std::clamp(2 * next_pause_, kFirstPause, kLongestPause);
  pause_ = next_pause_;
  kept_share_ = kLeastKeptShare;  // one more proposal decides
}

}  // namespace weft
