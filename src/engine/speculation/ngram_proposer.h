#pragma once

// Speculative decoding by look-up in the sequence itself, as vLLM's method "ngram": where the last tokens of a sequence
// occurred before, the tokens that followed there are proposed as the next ones. A step then computes several tokens at
// once, and those that sampling would have chosen anyway are kept. The answer is the same as without.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft {

// vLLM's --speculative-config.
struct SpeculativeConfig {
  std::int64_t num_speculative_tokens = 0;  // at most proposed for a step; 0: none are
  std::int64_t prompt_lookup_max = 5;       // tokens that are looked up, at most and at least
  std::int64_t prompt_lookup_min = 5;
  bool operator==(const SpeculativeConfig&) const = default;
};

// Reads {"method": "ngram", "num_speculative_tokens": N, "prompt_lookup_max": N, "prompt_lookup_min": N}; one of the
// last two stands for both. "" and "{}" propose none. UserError that names the key, what was wanted and what came.
SpeculativeConfig speculative_config(const std::string& json);

// Proposes tokens for one sequence.
class NgramProposer {
 public:
  NgramProposer() = default;
  explicit NgramProposer(const SpeculativeConfig& config) : config_(config) {}

  // Writes at most `most` tokens to `proposal`, whose capacity must suffice for num_speculative_tokens: those after the
  // longest earlier occurrence of the last tokens, the first one of equally long ones. Proposes nothing for a while
  // where few of the last proposals were kept.
  void propose(std::span<const int> prompt, std::span<const int> output, std::int64_t most, std::vector<int>& proposal);
  // How many tokens of the last proposal were kept. To be called after each proposal that is not empty.
  void report(std::size_t proposed, std::size_t kept);

 private:
  SpeculativeConfig config_;
  double kept_share_ = 1;        // a moving mean
  std::int64_t pause_ = 0;       // steps without a proposal that are left
  std::int64_t next_pause_ = 0;  // doubles while proposals fail
};

}  // namespace weft
