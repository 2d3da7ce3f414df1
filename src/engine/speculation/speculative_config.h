#pragma once

// Which tokens are proposed in speculative decoding, as vLLM's --speculative-config says it.

#include <cstdint>
#include <string>

#include "options/options.h"

namespace weft {

struct SpeculativeConfig {
  std::int64_t num_speculative_tokens = 0;  // at most proposed for a step; 0: none are
  // Method "draft_model": the model that proposes, as the command line names one; "": method "ngram".
  std::string model;
  std::int64_t max_model_len = 0;      // at most the context of that model; 0: its own
  std::int64_t prompt_lookup_max = 5;  // of "ngram": tokens that are looked up, at most and at least
  std::int64_t prompt_lookup_min = 5;
  bool operator==(const SpeculativeConfig&) const = default;
};

// Reads {"method": "ngram", "num_speculative_tokens": N, "prompt_lookup_max": N, "prompt_lookup_min": N}, where one
// of the last two is the value of both, or {"method": "draft_model", "model": MODEL, "num_speculative_tokens": N,
// "max_model_len": N}, where a model says the method. "" and "{}" propose none. UserError that names the key, what was
// wanted and what came.
SpeculativeConfig speculative_config(const std::string& json);

// The same of --speculative-config or of --draft-model and --num-draft-tokens. UserError if both are given.
SpeculativeConfig speculative_config(const Options& options);

}  // namespace weft
