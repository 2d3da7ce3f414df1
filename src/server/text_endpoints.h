#pragma once

// POST /tokenize and /detokenize.

#include "base/json.h"
#include "server/api_request.h"
#include "server/served_model.h"

namespace weft {

// ApiError for a request that is wrong.
Json tokenized(const ApiRequest& request, const ServedModel& model);
Json detokenized(const ApiRequest& request, const ServedModel& model);

}  // namespace weft
