#include "engine/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace weft {
namespace {

constexpr double kLeastTemperature = 0.01;  // vLLM's: below it float32 logits overflow

// Greater logit first; of equal ones the higher id, since top-p cuts the lower ids first.
bool ranks_lower(const TokenCandidate& a, const TokenCandidate& b) {
  return a.logit != b.logit ? a.logit < b.logit : a.id < b.id;
}

// Calls `visit(id, count)` for each different token of the sorted list that is in the vocabulary.
template <class Visit>
void for_each_token(const std::vector<int>& sorted, std::size_t vocabulary, const Visit& visit) {
  for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    while (end < sorted.size() && sorted[end] == sorted[begin]) ++end;
    const int id = sorted[begin];
    if (id >= 0 && static_cast<std::size_t>(id) < vocabulary) visit(static_cast<std::size_t>(id), end - begin);
  }
}

void keep_min_p(std::vector<TokenCandidate>& candidates, double min_p, float largest) {
  if (min_p <= 0) return;
  std::erase_if(candidates,
                [&](const TokenCandidate& c) { return std::exp(static_cast<double>(c.logit) - largest) < min_p; });
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
  USER_CHECK(top_p > 0 && top_p <= 1, "[top_p] must be above 0 and at most 1, but is {}", top_p);
  in("min_p", min_p, 0, 1);
  USER_CHECK(repetition_penalty > 0 && repetition_penalty <= 1e18,
             "[repetition_penalty] must be above 0 and at most 1e18, but is {}", repetition_penalty);
  in("frequency_penalty", frequency_penalty, -2, 2);
  in("presence_penalty", presence_penalty, -2, 2);
  USER_CHECK(penalty_window >= -1, "[penalty_window] must be -1 (all tokens), 0 or more, but is {}", penalty_window);
  USER_CHECK(top_k >= -1, "[top_k] must be -1, 0 (off) or more, but is {}", top_k);
  USER_CHECK(max_tokens >= 1, "[max_tokens] must be at least 1, but is {}", max_tokens);
  for (const auto& [name, count] : {std::pair("top_k", top_k), std::pair("max_tokens", max_tokens)})
    USER_CHECK(count <= INT32_MAX, "[{}] must be at most {}, but is {}", name, INT32_MAX, count);
  USER_CHECK(min_tokens >= 0 && min_tokens <= max_tokens,
             "[min_tokens] must be from 0 to max_tokens, which is {}, but is {}", max_tokens, min_tokens);
  for (const std::string& text : stop) USER_CHECK(!text.empty(), "[stop] a stop text must not be empty");
  USER_CHECK(!allowed_ids || !allowed_ids->empty(), "[allowed_ids] must have at least one token");
  for (const std::vector<int>& word : bad_words) USER_CHECK(!word.empty(), "[bad_words] a word must not be empty");
  for (const TokenBias& bias : logit_bias)
    USER_CHECK(bias.bias < INFINITY, "[logit_bias] must be a number, or minus infinity, but is {}", bias.bias);
  for (const auto& [name, count] : {std::pair("logprobs", logprobs), std::pair("prompt_logprobs", prompt_logprobs)})
    USER_CHECK(!count || *count >= -1, "[{}] must be -1 (all), 0 or more, but is {}", name, *count);
}

SamplingParameters sampling_of(const GenerationConfig& config, const SamplingParameters& defaults) {
  SamplingParameters parameters = defaults;
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

Sampler::Sampler(std::size_t vocabulary, std::size_t context) {
  penalised_.reserve(vocabulary);
  seen_.reserve(context);
  candidates_.reserve(vocabulary);
  others_.reserve(vocabulary);
  choices_.ids.reserve(vocabulary);
  choices_.probabilities.reserve(vocabulary);
}

// Returns the logits themselves if there are no penalties.
std::span<const float> Sampler::penalised(std::span<const float> logits, const SamplingParameters& parameters,
                                          std::span<const int> prompt, std::span<const int> output) {
  const bool active =
      parameters.repetition_penalty != 1 || parameters.frequency_penalty != 0 || parameters.presence_penalty != 0;
  if (!active) return logits;
  std::vector<float>& values = penalised_;
  values.assign(logits.begin(), logits.end());
  // An extreme penalty has a largest effect: the difference of two infinite logits would be no number.
  constexpr float kMost = std::numeric_limits<float>::max();
  const auto repetition =
      static_cast<float>(std::clamp<double>(parameters.repetition_penalty, std::numeric_limits<float>::min(), kMost));
  const auto frequency = static_cast<float>(parameters.frequency_penalty);
  const auto presence = static_cast<float>(parameters.presence_penalty);
  if (parameters.penalty_window >= 0) {
    const auto window = static_cast<std::size_t>(parameters.penalty_window);
    output = output.last(std::min(window, output.size()));
    prompt = prompt.last(std::min(window - output.size(), prompt.size()));
  }
  seen_.assign(prompt.begin(), prompt.end());
  seen_.insert(seen_.end(), output.begin(), output.end());
  std::sort(seen_.begin(), seen_.end());
  for_each_token(seen_, values.size(), [&](std::size_t id, std::size_t) {
    const float value = values[id], penalised = value > 0 ? value / repetition : value * repetition;
    if (std::isfinite(value)) values[id] = std::clamp(penalised, -kMost, kMost);
  });
  seen_.assign(output.begin(), output.end());
  std::sort(seen_.begin(), seen_.end());
  for_each_token(seen_, values.size(), [&](std::size_t id, std::size_t count) {
    values[id] -= frequency * static_cast<float>(count);
    values[id] -= presence;
  });
  return values;
}

// Tokens that tie with the k-th one stay.
void Sampler::keep_top_k(std::int64_t top_k) {
  if (top_k <= 0 || static_cast<std::size_t>(top_k) >= candidates_.size()) return;
  others_ = candidates_;
  std::nth_element(others_.begin(), others_.begin() + (top_k - 1), others_.end(),
                   [](const TokenCandidate& a, const TokenCandidate& b) { return a.logit > b.logit; });
  const float least = others_[static_cast<std::size_t>(top_k - 1)].logit;
  std::erase_if(candidates_, [&](const TokenCandidate& c) { return c.logit < least; });
}

// Takes tokens, the most likely first, until the taken ones hold top_p. It uses a heap because it takes only a few.
void Sampler::keep_top_p(double top_p, float largest) {
  if (top_p >= 1) return;
  double total = 0;
  for (const TokenCandidate& c : candidates_) total += std::exp(static_cast<double>(c.logit) - largest);
  std::make_heap(candidates_.begin(), candidates_.end(), ranks_lower);
  others_.clear();
  double above = 0;
  for (auto end = candidates_.end(); end != candidates_.begin() && (others_.empty() || above < top_p * total); --end) {
    std::pop_heap(candidates_.begin(), end, ranks_lower);
    others_.push_back(*(end - 1));
    above += std::exp(static_cast<double>(others_.back().logit) - largest);
  }
  candidates_.swap(others_);
}

// Infinite logits share all of the probability.
void Sampler::share_among_infinite(float& largest) {
  if (!std::isinf(largest)) return;
  std::erase_if(candidates_, [&](const TokenCandidate& c) { return c.logit != largest; });
  for (TokenCandidate& c : candidates_) c.logit = 0;
  largest = 0;
}

float Sampler::fill_candidates(std::span<const float> logits, float temperature) {
  candidates_.clear();
  float largest = -INFINITY;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float value = logits[i] / temperature;
    if (!(value > -INFINITY)) continue;  // ruled out, or not a number
    candidates_.push_back({static_cast<int>(i), value});
    largest = std::max(largest, value);
  }
  USER_CHECK(!candidates_.empty(), "[sampler] all logits are -infinity, so no token can follow");
  share_among_infinite(largest);
  return largest;
}

void Sampler::apply_temperature(float temperature, float& largest) {
  for (TokenCandidate& c : candidates_) c.logit /= temperature;
  largest /= temperature;
  share_among_infinite(largest);
}

const Distribution& Sampler::distribution(std::span<const float> logits, const SamplingParameters& parameters,
                                          std::span<const int> prompt, std::span<const int> output) {
  const std::span<const float> values = penalised(logits, parameters, prompt, output);
  const auto temperature = static_cast<float>(std::max(parameters.temperature, kLeastTemperature));
  const bool is_scaled = parameters.order[0] == SamplerStep::temperature;
  float largest = fill_candidates(values, is_scaled ? temperature : 1.0F);
  for (const SamplerStep step : parameters.order) {
    switch (step) {
      case SamplerStep::temperature:
        if (!is_scaled) apply_temperature(temperature, largest);
        break;
      case SamplerStep::min_p:
        keep_min_p(candidates_, parameters.min_p, largest);
        break;
      case SamplerStep::top_k:
        keep_top_k(parameters.top_k);
        break;
      case SamplerStep::top_p:
        keep_top_p(parameters.top_p, largest);
        break;
    }
  }
  std::sort(candidates_.begin(), candidates_.end(),
            [](const TokenCandidate& a, const TokenCandidate& b) { return a.id < b.id; });
  choices_.ids.clear();
  choices_.probabilities.clear();
  double total = 0;
  for (const TokenCandidate& c : candidates_) {
    choices_.ids.push_back(c.id);
    choices_.probabilities.push_back(std::exp(static_cast<double>(c.logit) - largest));
    total += choices_.probabilities.back();
  }
  for (double& probability : choices_.probabilities) probability /= total;
  return choices_;
}

int Sampler::greedy_token(std::span<const float> logits, const SamplingParameters& parameters,
                          std::span<const int> prompt, std::span<const int> output) {
  const std::span<const float> values = penalised(logits, parameters, prompt, output);
  int best = -1;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isnan(values[i]) && (best < 0 || values[i] > values[static_cast<std::size_t>(best)]))
      best = static_cast<int>(i);
  USER_CHECK(best >= 0, "[sampler] all logits are -infinity, so no token can follow");
  return best;
}

int Sampler::sample(std::span<const float> logits, const SamplingParameters& parameters, std::span<const int> prompt,
                    std::span<const int> output) {
  if (parameters.temperature == 0) return greedy_token(logits, parameters, prompt, output);
  const Distribution& choices = distribution(logits, parameters, prompt, output);
  double left = uniform(parameters.seed, output.size());
  for (std::size_t i = 0; i < choices.ids.size(); ++i) {
    left -= choices.probabilities[i];
    if (left < 0) return choices.ids[i];
  }
  return choices.ids.back();
}

}  // namespace weft
