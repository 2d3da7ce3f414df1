#pragma once

// The sampling parameters of a request, as far as its sender states them. The others are the model's, and if it has
// none the defaults of the interface.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/log.h"
#include "engine/sampling/sampler.h"
#include "io/checkpoint.h"

namespace weft {

// The defaults of sampling: a generation_config.json, and what replaces single keys of it.
struct GenerationConfigSource {
  std::string from = "auto";  // auto: the model's; none or vllm: no file; else a folder that has one
  // A JSON object of temperature, top_k, top_p, min_p, repetition_penalty and max_new_tokens; "": none.
  std::string overrides;

  // UserError that names --generation-config or --override-generation-config, where one of them is wrong.
  void check() const;
};

struct SamplingRequest {
  SamplingParameters parameters;  // as its sender states them; the others are the interface's defaults
  // The keys of generation_config.json (temperature, top_k, top_p, min_p, repetition_penalty, max_new_tokens) and
  // frequency_penalty and presence_penalty, for which `parameters` has the sender's value.
  std::vector<std::string_view> given;
  GenerationConfigSource config = {};

  bool has_given(std::string_view key) const;
  // Copies what is given but the length, which has rules of its own in servers (AnswerLimits).
  void take_given(SamplingParameters& target) const;
};

// A value that is not given is that of the overrides, else that of the file, else that of `parameters`. Throws
// UserError for a value outside its bounds, and for a source that is wrong. Unknown keys of the generation config are
// reported in `log`.
// The overrides alone say max_tokens, because the interfaces have defaults of their own.
SamplingParameters sampling_parameters(const SamplingRequest& request, const Checkpoint& checkpoint, const Log& log);

// What the model's publisher or the operator says about the length of answers: max_new_tokens, as vLLM reads it.
struct AnswerLimits {
  std::optional<std::int64_t> unasked;  // of each request that names no length: the sender of the defaults gave it
  std::optional<std::int64_t> usual;    // of a chat that names no length, without `unasked`
  std::optional<std::int64_t> most;     // of all answers: from the overrides, or from the folder that was named
};

// `defaults` are those of a server. UserError for a source that is wrong.
AnswerLimits answer_limits(const SamplingRequest& defaults, const Checkpoint& checkpoint);

}  // namespace weft
