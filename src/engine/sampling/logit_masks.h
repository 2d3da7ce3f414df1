#pragma once

// What a request asks of the logits themselves, in vLLM's order: allowed tokens, bad words, min_tokens, biases.

#include <span>
#include <vector>

#include "engine/sampling/sampler.h"
#include "io/tokenizer.h"

namespace weft {

// The token sequences that write a bad word: as it is, and with a space before it. UserError for a word without tokens
// or that is not UTF-8.
std::vector<std::vector<int>> bad_word_tokens(const Tokenizer& tokenizer, const std::string& word);

class LogitMasks {
 public:
  LogitMasks() = default;
  // Has its own copy of what it needs. `ends` are the tokens that end an answer of the model. Tokens outside the
  // vocabulary are an InternalError of apply().
  LogitMasks(const SamplingParameters& parameters, std::span<const int> ends);

  // Whether apply() does anything for some output.
  bool is_active() const;
  // Changes the logits of the token that follows `output`. Ruled out tokens are minus infinity. Allocates nothing. If a
  // constraint has ruled out all tokens but ends, min_tokens leaves these.
  void apply(std::span<float> logits, std::span<const int> output, bool has_constraint = false) const;

 private:
  // Whether a token is left that ends nothing.
  bool can_go_on(std::span<const float> logits) const;

  bool limits_tokens_ = false;
  std::vector<int> allowed_;  // ascending
  std::vector<std::vector<int>> bad_words_;
  std::int64_t min_tokens_ = 0;
  std::vector<int> ends_;  // what min_tokens rules out; ascending
  std::vector<TokenBias> bias_;
};

}  // namespace weft
