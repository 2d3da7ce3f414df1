#include "engine/sampling/sampling_request.h"

#include <algorithm>

namespace weft {

SamplingParameters sampling_parameters(const SamplingRequest& request, const Checkpoint& checkpoint, const Log& log) {
  SamplingParameters parameters = request.parameters;
  if (request.reads_generation_config) {
    // A key that the request overrides is not looked at: whatever is wrong with it, the model runs.
    const GenerationConfig config = checkpoint.generation_config(request.given);
    log_unknown_keys(log, checkpoint.path() + "/generation_config.json", config.unknown_keys);
    const SamplingParameters configured = sampling_of(config, request.parameters);
    const auto take = [&](std::string_view key, auto SamplingParameters::*field) {
      if (std::find(request.given.begin(), request.given.end(), key) == request.given.end())
        parameters.*field = configured.*field;
    };
    take("temperature", &SamplingParameters::temperature);
    take("top_k", &SamplingParameters::top_k);
    take("top_p", &SamplingParameters::top_p);
    take("min_p", &SamplingParameters::min_p);
    take("repetition_penalty", &SamplingParameters::repetition_penalty);
  }
  parameters.check();
  return parameters;
}

}  // namespace weft
