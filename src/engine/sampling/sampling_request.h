#pragma once

// The sampling parameters of a request, as far as its sender states them. The others are the model's, and if it has
// none the defaults of the interface.

#include <string_view>
#include <vector>

#include "compiler/log.h"
#include "engine/sampling/sampler.h"
#include "io/checkpoint.h"

namespace weft {

struct SamplingRequest {
  SamplingParameters parameters;  // as its sender states them; the others are the interface's defaults
  // The keys of generation_config.json (temperature, top_k, top_p, min_p, repetition_penalty) for which `parameters`
  // has the sender's value.
  std::vector<std::string_view> given;
  bool reads_generation_config = true;  // else values that are not given are the defaults of SamplingParameters
};

// Throws UserError for a value outside its bounds. Unknown keys of the generation config are reported in `log`.
SamplingParameters sampling_parameters(const SamplingRequest& request, const Checkpoint& checkpoint, const Log& log);

}  // namespace weft
