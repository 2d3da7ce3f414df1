#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"

namespace weft {
namespace {

constexpr double kLeastTemperature = 0.01;  // vLLM's: below it float32 logits overflow

struct TokenCandidate {
  int id;
  float logit;
};

// Greater logit first; of equal ones the higher id, since top-p cuts the lower ids first.
bool ranks_lower(const TokenCandidate& a, const TokenCandidate& b) {
  return a.logit != b.logit ? a.logit < b.logit : a.id < b.id;
}

std::vector<float> penalised(std::span<const float> logits, const SamplingParameters& parameters,
                             std::span<const int> prompt, std::span<const int> output) {
  std::vector<float> values(logits.begin(), logits.end());
  const bool active =
      parameters.repetition_penalty != 1 || parameters.frequency_penalty != 0 || parameters.presence_penalty != 0;
  if (!active) return values;
  std::map<int, int> in_output, seen;
  for (int id : output) ++in_output[id];
  for (int id : prompt) ++seen[id];
  for (int id : output) ++seen[id];
  const auto repetition = static_cast<float>(parameters.repetition_penalty);
  auto has = [&](int id) { return id >= 0 && static_cast<std::size_t>(id) < values.size(); };
  for (const auto& [id, count] : seen) {
    if (!has(id)) continue;
    float& value = values[static_cast<std::size_t>(id)];
    value = value > 0 ? value / repetition : value * repetition;
  }
  for (const auto& [id, count] : in_output) {
    if (!has(id)) continue;
    float& value = values[static_cast<std::size_t>(id)];
    value -= static_cast<float>(parameters.frequency_penalty) * static_cast<float>(count);
    value -= static_cast<float>(parameters.presence_penalty);
  }
  return values;
}

void keep_min_p(std::vector<TokenCandidate>& candidates, double min_p, float largest) {
  if (min_p <= 0) return;
  std::erase_if(candidates,
                [&](const TokenCandidate& c) { return std::exp(static_cast<double>(c.logit) - largest) < min_p; });
}

// Those that tie with the k-th stay.
void keep_top_k(std::vector<TokenCandidate>& candidates, std::int64_t top_k) {
  if (top_k <= 0 || static_cast<std::size_t>(top_k) >= candidates.size()) return;
  std::vector<TokenCandidate> sorted = candidates;
  std::nth_element(sorted.begin(), sorted.begin() + (top_k - 1), sorted.end(),
                   [](const TokenCandidate& a, const TokenCandidate& b) { return a.logit > b.logit; });
  const float least = sorted[static_cast<std::size_t>(top_k - 1)].logit;
  std::erase_if(candidates, [&](const TokenCandidate& c) { return c.logit < least; });
}

// Taken from the most likely on until those above hold top_p; a heap, since few are taken.
void keep_top_p(std::vector<TokenCandidate>& candidates, double top_p, float largest) {
  if (top_p >= 1) return;
  double total = 0;
  for (const TokenCandidate& c : candidates) total += std::exp(static_cast<double>(c.logit) - largest);
  std::make_heap(candidates.begin(), candidates.end(), ranks_lower);
  std::vector<TokenCandidate> kept;
  double above = 0;
  for (auto end = candidates.end(); end != candidates.begin() && (kept.empty() || above < top_p * total); --end) {
    std::pop_heap(candidates.begin(), end, ranks_lower);
    kept.push_back(*(end - 1));
    above += std::exp(static_cast<double>(kept.back().logit) - largest);
  }
  candidates = std::move(kept);
}

// A uniform number in [0, 1) from seed and position (splitmix64).
double uniform(std::uint64_t seed, std::uint64_t position) {
  std::uint64_t x = seed + 0x9E3779B97F4A7C15ull * (position + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) * 0x1p-53;
}

}  // namespace

void SamplingParameters::check() const {
  auto in = [](const char* name, double value, double least, double most) {
    USER_CHECK(value >= least && value <= most, "[{}] must be from {} to {}, but is {}", name, least, most, value);
  };
  in("temperature", temperature, 0, 1e6);
  in("top_p", top_p, 1e-9, 1);
  in("min_p", min_p, 0, 1);
  in("repetition_penalty", repetition_penalty, 1e-6, 1e6);
  in("frequency_penalty", frequency_penalty, -2, 2);
  in("presence_penalty", presence_penalty, -2, 2);
  USER_CHECK(top_k >= -1 && top_k <= INT32_MAX, "[top_k] must be -1, 0 (off) or more, but is {}", top_k);
  USER_CHECK(max_tokens >= 1 && max_tokens <= INT32_MAX, "[max_tokens] must be at least 1, but is {}", max_tokens);
  for (const std::string& text : stop) USER_CHECK(!text.empty(), "[stop] a stop text must not be empty");
}

SamplingParameters sampling_of(const GenerationConfig& config) {
  SamplingParameters parameters;
  if (config.do_sample && !*config.do_sample) return parameters;
  const auto take = [](auto& field, const auto& configured) {
    if (configured) field = *configured;
  };
  take(parameters.temperature, config.temperature);
  take(parameters.top_k, config.top_k);
  take(parameters.top_p, config.top_p);
  take(parameters.min_p, config.min_p);
  take(parameters.repetition_penalty, config.repetition_penalty);
  return parameters;
}

Distribution distribution(std::span<const float> logits, const SamplingParameters& parameters,
                          std::span<const int> prompt, std::span<const int> output) {
  std::vector<float> values = penalised(logits, parameters, prompt, output);
  const auto temperature = static_cast<float>(std::max(parameters.temperature, kLeastTemperature));
  std::vector<TokenCandidate> candidates;
  float largest = -INFINITY;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = values[i] / temperature;
    if (!(value > -INFINITY)) continue;  // ruled out, or not a number
    candidates.push_back({static_cast<int>(i), value});
    largest = std::max(largest, value);
  }
  USER_CHECK(!candidates.empty(), "[sampler] no logit is a number");
  keep_min_p(candidates, parameters.min_p, largest);
  keep_top_k(candidates, parameters.top_k);
  keep_top_p(candidates, parameters.top_p, largest);
  std::sort(candidates.begin(), candidates.end(),
            [](const TokenCandidate& a, const TokenCandidate& b) { return a.id < b.id; });
  Distribution result;
  double total = 0;
  for (const TokenCandidate& c : candidates) {
    result.ids.push_back(c.id);
    result.probabilities.push_back(std::exp(static_cast<double>(c.logit) - largest));
    total += result.probabilities.back();
  }
  for (double& probability : result.probabilities) probability /= total;
  return result;
}

int greedy_token(std::span<const float> logits, const SamplingParameters& parameters, std::span<const int> prompt,
                 std::span<const int> output) {
  const std::vector<float> values = penalised(logits, parameters, prompt, output);
  int best = -1;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isnan(values[i]) && (best < 0 || values[i] > values[static_cast<std::size_t>(best)]))
      best = static_cast<int>(i);
  USER_CHECK(best >= 0, "[sampler] no logit is a number");
  return best;
}

int sample(std::span<const float> logits, const SamplingParameters& parameters, std::span<const int> prompt,
           std::span<const int> output) {
  if (parameters.temperature == 0) return greedy_token(logits, parameters, prompt, output);
  const Distribution choices = distribution(logits, parameters, prompt, output);
  double left = uniform(parameters.seed, output.size());
  for (std::size_t i = 0; i < choices.ids.size(); ++i) {
    left -= choices.probabilities[i];
    if (left < 0) return choices.ids[i];
  }
  return choices.ids.back();
}

}  // namespace weft
