#pragma once

// The small endpoints of llama.cpp's server: /props, /slots and /apply-template; and the defaults of sampling and the
// fields of its /completion.

#include <cstdint>
#include <span>
#include <string>

#include "base/json.h"
#include "engine/sampling/sampler.h"
#include "server/api_request.h"
#include "server/sequence_records.h"
#include "server/served_model.h"

namespace weft {

// A request with this seed has a random one: LLAMA_DEFAULT_SEED.
inline constexpr std::uint64_t kLlamaRandomSeed = 4294967295;

// What llama.cpp samples with where a request says nothing (its common.h).
SamplingParameters llama_defaults();
// By llama.cpp's names.
Json llama_settings(const SamplingParameters& parameters);

// Readers of fields, as in request_fields.h: a prompt of texts and ids, and a `logit_bias` of ids and texts.
std::string read_prompt_parts(simdjson::dom::element value, ApiRequest& request);
std::string read_text_bias(simdjson::dom::element value, ApiRequest& request);
// `max_tokens`, which is another name of `n_predict`. If a request has both, n_predict counts.
std::string read_other_limit(simdjson::dom::element value, ApiRequest& request);

// A list of {"id": 0, "scale": 0.5}. An adapter without a scale has 0, as in llama.cpp.
std::string read_lora_scales(simdjson::dom::element value, ApiRequest& request);

Json props(const ServedModel& model);
// Weft has no slots: each stands for a sequence that a step may have.
Json slots(const ServedModel& model, std::span<const OpenSequence> running);
// ApiError for messages that the template refuses.
Json applied_template(const ApiRequest& request, const ServedModel& model);

}  // namespace weft
