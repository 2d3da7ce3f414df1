#pragma once

// Chooses the next token from logits by vLLM's rules and, if nothing else is asked for, in its order: penalties
// (repetition over prompt and output, then frequency and presence over the output), temperature, min-p, top-k, top-p.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/sampling/token_constraint.h"
#include "io/generation_config.h"

namespace weft {

// Added to the logit of a token; minus infinity rules the token out.
struct TokenBias {
  int id = 0;
  float bias = 0;
};

// What happens to the candidates after the penalties.
enum class SamplerStep : std::uint8_t { temperature, min_p, top_k, top_p };
using SamplerOrder = std::array<SamplerStep, 4>;  // each step once
inline constexpr SamplerOrder kVllmOrder = {SamplerStep::temperature, SamplerStep::min_p, SamplerStep::top_k,
                                            SamplerStep::top_p};
inline constexpr SamplerOrder kLlamaOrder = {SamplerStep::top_k, SamplerStep::top_p, SamplerStep::min_p,
                                             SamplerStep::temperature};

struct SamplingParameters {
  double temperature = 0;  // 0: greedy; values in (0, 0.01) count as 0.01
  std::int64_t top_k = 0;  // 0 or -1: off
  double top_p = 1;        // (0, 1]
  double min_p = 0;        // [0, 1]; relative to the most likely token
  double repetition_penalty = 1;
  double frequency_penalty = 0;
  double presence_penalty = 0;
  std::int64_t penalty_window = -1;  // penalties count the last so many tokens of prompt and output; -1: all of them
  SamplerOrder order = kVllmOrder;
  std::uint64_t seed = 0;
  std::int64_t max_tokens = 128;
  bool ignore_end = false;              // end-of-text tokens do not end the answer
  std::vector<std::string> stop = {};   // texts that end the answer
  std::vector<int> stop_ids = {};       // tokens that end the answer
  bool includes_stop = false;           // the stop text, or the text of the stop token, is part of the answer
  bool skips_special = true;            // control tokens give no text
  std::vector<int> shown_special = {};  // but these do
  bool spaces_between_special = true;   // see DecodeOptions
  // The first min_tokens tokens are neither ends nor stop tokens, and no stop text is looked for in their text.
  std::int64_t min_tokens = 0;
  std::optional<std::vector<int>> allowed_ids = {};  // only these tokens are chosen
  std::vector<std::vector<int>> bad_words = {};      // tokens that the output never has in a row
  std::vector<TokenBias> logit_bias = {};            // at most one of each token
  // How many of the most likely tokens are reported for each token of the output, and of the prompt; -1: all of them.
  std::optional<std::int64_t> logprobs = {}, prompt_logprobs = {};

  std::shared_ptr<const TokenConstraint> constraint;  // what the answer may be; null: anything

  // UserError that names the parameter, its allowed values and its value.
  void check() const;
};

// The parameters that the model's files recommend; `defaults` for those that they do not give, and for all of them
// where they recommend greedy sampling.
SamplingParameters sampling_of(const GenerationConfig& config, const SamplingParameters& defaults = {});

// The candidates for the next token: ids in ascending order, and probabilities that sum to 1.
struct Distribution {
  std::vector<int> ids;
  std::vector<double> probabilities;
};

// A candidate for the next token.
struct TokenCandidate {
  int id;
  float logit;
};

// Chooses tokens in memory of its own, which it reuses: after the first call it allocates nothing. `prompt` and
// `output` are for the penalties. UserError when all logits are -infinity.
class Sampler {
 public:
  Sampler() = default;
  // Allocates the memory for logits of `vocabulary` tokens and sequences of `context` tokens.
  Sampler(std::size_t vocabulary, std::size_t context);

  // The candidates for the next token; valid until the next call.
  const Distribution& distribution(std::span<const float> logits, const SamplingParameters& parameters,
                                   std::span<const int> prompt, std::span<const int> output);

  // The most likely token after penalties; of equally likely ones, the lowest id.
  int greedy_token(std::span<const float> logits, const SamplingParameters& parameters, std::span<const int> prompt,
                   std::span<const int> output);

  // The next token: greedy at temperature 0, else drawn with a generator that depends only on the seed and on the
  // number of tokens in the output.
  int sample(std::span<const float> logits, const SamplingParameters& parameters, std::span<const int> prompt,
             std::span<const int> output);

 private:
  std::span<const float> penalised(std::span<const float> logits, const SamplingParameters& parameters,
                                   std::span<const int> prompt, std::span<const int> output);
  // Writes the candidates at this temperature, and returns the largest logit.
  float fill_candidates(std::span<const float> logits, float temperature);
  void apply_temperature(float temperature, float& largest);
  void share_among_infinite(float& largest);
  void keep_top_k(std::int64_t top_k);
  void keep_top_p(double top_p, float largest);

  std::vector<float> penalised_;
  std::vector<int> seen_;
  std::vector<TokenCandidate> candidates_, others_;
  Distribution choices_;
};

}  // namespace weft
