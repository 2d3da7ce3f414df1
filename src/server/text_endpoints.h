#pragma once

// POST /tokenize, /detokenize and /v1/messages/count_tokens, and GET /tokenizer_info.

#include "base/json.h"
#include "server/api_request.h"
#include "server/served_model.h"

namespace weft {

// ApiError for a request that is wrong.
Json tokenized(const ApiRequest& request, const ServedModel& model);
Json detokenized(const ApiRequest& request, const ServedModel& model);
Json counted_tokens(ApiRequest request, const ServedModel& model);

// What a tokenizer_config.json has; the class is Weft's, whatever the model's was.
Json tokenizer_info(const ServedModel& model);

}  // namespace weft
