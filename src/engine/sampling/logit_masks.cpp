#include "engine/sampling/logit_masks.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"

namespace weft {
namespace {

float& logit_of(std::span<float> logits, int id) {
  CHECK(id >= 0 && static_cast<std::size_t>(id) < logits.size(), "token {} of {}", id, logits.size());
  return logits[static_cast<std::size_t>(id)];
}

// `allowed` is ascending.
void keep_allowed(std::span<float> logits, std::span<const int> allowed) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (next < allowed.size() && static_cast<std::size_t>(allowed[next]) == i) {
      ++next;
    } else {
      logits[i] = -INFINITY;
    }
  }
}

// Whether the output ends with all tokens of the word but its last.
bool is_almost_written(std::span<const int> word, std::span<const int> output) {
  const std::size_t before = word.size() - 1;
  return before <= output.size() && std::equal(word.begin(), word.end() - 1, output.end() - static_cast<long>(before));
}

}  // namespace

std::vector<std::vector<int>> bad_word_tokens(const Tokenizer& tokenizer, const std::string& word) {
  std::vector<std::vector<int>> forms;
  for (const std::string& text : {word, " " + word}) {
    std::vector<int> ids = tokenizer.encode(text, {.add_special = false});
    USER_CHECK(!word.empty() && !ids.empty(), "[bad_words] a word must have at least one token, but is {}",
               quote(word));
    if (std::find(forms.begin(), forms.end(), ids) == forms.end()) forms.push_back(std::move(ids));
  }
  return forms;
}

LogitMasks::LogitMasks(const SamplingParameters& parameters, std::span<const int> ends)
    : limits_tokens_(parameters.allowed_ids.has_value()),
      allowed_(parameters.allowed_ids.value_or(std::vector<int>())),
      bad_words_(parameters.bad_words),
      min_tokens_(parameters.min_tokens),
      ends_(parameters.stop_ids),
      bias_(parameters.logit_bias) {
  sort_without_repeats(allowed_);
  if (!parameters.ignore_end) ends_.insert(ends_.end(), ends.begin(), ends.end());
  std::sort(ends_.begin(), ends_.end());
}

bool LogitMasks::can_go_on(std::span<const float> logits) const {
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -INFINITY && !std::binary_search(ends_.begin(), ends_.end(), static_cast<int>(i))) return true;
  return false;
}

bool LogitMasks::is_active() const {
  return limits_tokens_ || !bad_words_.empty() || min_tokens_ > 0 || !bias_.empty();
}

void LogitMasks::apply(std::span<float> logits, std::span<const int> output, bool has_constraint) const {
  if (limits_tokens_) keep_allowed(logits, allowed_);
  for (const std::vector<int>& word : bad_words_)
    if (is_almost_written(word, output)) logit_of(logits, word.back()) = -INFINITY;
  if (std::ssize(output) < min_tokens_ && (!has_constraint || can_go_on(logits)))
    for (const int id : ends_) logit_of(logits, id) = -INFINITY;
  for (const TokenBias& bias : bias_) logit_of(logits, bias.id) += bias.bias;
}

}  // namespace weft
