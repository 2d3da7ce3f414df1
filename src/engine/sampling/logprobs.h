#pragma once

// Log probabilities of tokens: the log softmax of the logits that the model gives, before biases, masks, penalties and
// temperature change them.

#include <cstdint>
#include <span>
#include <vector>

namespace weft {

// log(sum(exp(logits))) in double precision; infinite if a logit is, and NaN if one is NaN.
double log_sum_exp(std::span<const float> logits);
// -log of the probability of a token. Infinite logits share all of the probability.
double negative_log_likelihood(std::span<const float> logits, std::size_t id);

struct TokenLogprob {
  int id = -1;
  float logprob = 0;
};

// One position of a sequence.
struct TokenLogprobs {
  TokenLogprob chosen = {};            // the token that the sequence has there
  std::int64_t rank = 0;               // of the chosen token: 1 is the most likely; 0: it has no log probability
  std::vector<TokenLogprob> top = {};  // the most likely tokens, the most likely first
};

// `count` tokens are reported as the most likely ones, -1: all. Of equally likely tokens the lower id is first. No
// logit is NaN, and `chosen` is in the vocabulary.
TokenLogprobs logprobs_of(std::span<const float> logits, int chosen, std::int64_t count);

}  // namespace weft
