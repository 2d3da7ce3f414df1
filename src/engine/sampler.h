#pragma once

// From logits to the next token, by vLLM's rules and in its order: penalties (repetition over prompt and output, then
// frequency and presence over the output), temperature, min-p, top-k, top-p.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/generation_config.h"

namespace weft {

struct SamplingParameters {
  double temperature = 0;  // 0: greedy; values in (0, 0.01) count as 0.01
  std::int64_t top_k = 0;  // 0 or -1: off
  double top_p = 1;        // (0, 1]
  double min_p = 0;        // [0, 1]; relative to the most likely token
  double repetition_penalty = 1;
  double frequency_penalty = 0;
  double presence_penalty = 0;
  std::uint64_t seed = 0;
  std::int64_t max_tokens = 128;
  bool ignore_end = false;        // end-of-text tokens do not end it
  std::vector<std::string> stop;  // text that ends it; not part of the answer

  // UserError naming the parameter, what it may be and what it is.
  void check() const;
};

// What the makers of a model ask for, where its files say so and do not ask for greedy; else as above.
SamplingParameters sampling_of(const GenerationConfig& config);

// What may come next: ids ascending, probabilities that sum to 1.
struct Distribution {
  std::vector<int> ids;
  std::vector<double> probabilities;
};

// A candidate for the next token.
struct TokenCandidate {
  int id;
  float logit;
};

// Chooses tokens in memory of its own, so that one that has chosen before takes none. `prompt` and `output` are for the
// penalties. UserError when no logit is a number.
class Sampler {
 public:
  Sampler() = default;
  // With memory for logits of `vocabulary` tokens and sequences of `context` tokens.
  Sampler(std::size_t vocabulary, std::size_t context);

  // What may come next; valid until the next call.
  const Distribution& distribution(std::span<const float> logits, const SamplingParameters& parameters,
                                   std::span<const int> prompt, std::span<const int> output);

  // The most likely token after penalties; the lowest id of equals.
  int greedy_token(std::span<const float> logits, const SamplingParameters& parameters, std::span<const int> prompt,
                   std::span<const int> output);

  // The next token: greedy at temperature 0, else drawn with a generator that depends on the seed and on how many
  // tokens the output has, and on nothing else.
  int sample(std::span<const float> logits, const SamplingParameters& parameters, std::span<const int> prompt,
             std::span<const int> output);

 private:
  std::span<const float> penalised(std::span<const float> logits, const SamplingParameters& parameters,
                                   std::span<const int> prompt, std::span<const int> output);
  void keep_top_k(std::int64_t top_k);
  void keep_top_p(double top_p, float largest);

  std::vector<float> penalised_;
  std::vector<int> seen_;
  std::vector<TokenCandidate> candidates_, others_;
  Distribution choices_;
};

}  // namespace weft
