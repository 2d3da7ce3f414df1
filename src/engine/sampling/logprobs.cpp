#include "engine/sampling/logprobs.h"

#include <algorithm>
#include <cmath>

#include "engine/sampling/sampler.h"

namespace weft {
namespace {

// The logarithm of a token's probability, from its logit.
class LogSoftmax {
 public:
  explicit LogSoftmax(std::span<const float> logits) : whole_(log_sum_exp(logits)) {
    if (std::isinf(whole_) && whole_ > 0)
      log_of_infinite_ = std::log(static_cast<double>(std::count(logits.begin(), logits.end(), INFINITY)));
  }
  double operator()(float logit) const {
    if (!std::isinf(whole_) || whole_ < 0) return logit - whole_;
    return std::isinf(logit) && logit > 0 ? -log_of_infinite_ : -INFINITY;
  }

 private:
  double whole_;
  double log_of_infinite_ = 0;  // of their number
};

bool is_more_likely(const TokenCandidate& a, const TokenCandidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// The first `count` candidates in order. A heap whose front is the least likely of those that were kept.
std::vector<TokenCandidate> most_likely(std::span<const float> logits, std::size_t count) {
  std::vector<TokenCandidate> kept;
  kept.reserve(count);
  for (std::size_t i = 0; i < logits.size() && count > 0; ++i) {
    const TokenCandidate candidate{static_cast<int>(i), logits[i]};
    if (kept.size() == count) {
      if (!is_more_likely(candidate, kept.front())) continue;
      std::pop_heap(kept.begin(), kept.end(), is_more_likely);
      kept.pop_back();
    }
    kept.push_back(candidate);
    std::push_heap(kept.begin(), kept.end(), is_more_likely);
  }
  std::sort_heap(kept.begin(), kept.end(), is_more_likely);
  return kept;
}

}  // namespace

double log_sum_exp(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  if (std::isinf(largest)) return largest;
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

double negative_log_likelihood(std::span<const float> logits, std::size_t id) {
  return -LogSoftmax(logits)(logits[id]);
}

TokenLogprobs logprobs_of(std::span<const float> logits, int chosen, std::int64_t count) {
  const LogSoftmax log_softmax(logits);
  const auto id = static_cast<std::size_t>(chosen);
  TokenLogprobs result{.chosen = {chosen, static_cast<float>(log_softmax(logits[id]))}, .rank = 1};
  for (std::size_t i = 0; i < logits.size(); ++i)
    result.rank += is_more_likely({static_cast<int>(i), logits[i]}, {chosen, logits[id]}) ? 1 : 0;
  const std::size_t most = count < 0 ? logits.size() : std::min(static_cast<std::size_t>(count), logits.size());
  result.top.reserve(most);
  for (const TokenCandidate& candidate : most_likely(logits, most))
    result.top.push_back({candidate.id, static_cast<float>(log_softmax(candidate.logit))});
  return result;
}

}  // namespace weft
