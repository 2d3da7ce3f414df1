#pragma once

// The fields of a request that choose its tokens, as parameters of the engine.

#include "engine/sampling/sampler.h"
#include "server/api_request.h"
#include "server/served_model.h"

namespace weft {

// All but max_tokens and the seed. ApiError 400 for tokens outside the vocabulary, bad words that cannot be tokenized,
// and more log probabilities than the server gives.
SamplingParameters requested_sampling(const ApiRequest& request, const ServedModel& model);

// How many of the most likely tokens an answer has for each of its tokens; nullopt: it has no log probabilities.
std::optional<std::int64_t> requested_logprobs(const ApiRequest& request);

// Whether the log probabilities of an answer begin with those of the prompt.
bool echoes_logprobs(const ApiRequest& request);

}  // namespace weft
