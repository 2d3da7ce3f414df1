#pragma once

// The small endpoints of llama.cpp's server: /props, /slots and /apply-template; and its defaults of sampling.

#include "base/json.h"
#include "engine/sampling/sampler.h"
#include "server/api_request.h"
#include "server/served_model.h"

namespace weft {

// What llama.cpp samples with where a request says nothing (its common.h).
SamplingParameters llama_defaults();
// By llama.cpp's names.
Json llama_settings(const SamplingParameters& parameters);

Json props(const ServedModel& model);
// Weft has no slots: each stands for a sequence that a step may have.
Json slots(const ServedModel& model, std::size_t running);
// ApiError for messages that the template refuses.
Json applied_template(const ApiRequest& request, const ServedModel& model);

}  // namespace weft
