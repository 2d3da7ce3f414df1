#pragma once

// POST /infill of llama.cpp: the prompt by which a model fills in the middle of a text.

#include <string>

#include "server/prepared_request.h"
#include "server/request_fields.h"

namespace weft {

// Reader of the field input_extra, as in request_fields.h: files that the model should know.
std::string read_input_extra(Element value, ApiRequest& request);

// ApiError 501 if the model has no tokens for it.
void add_infill_prompt(PreparedRequest& prepared, const ServedModel& model);

}  // namespace weft
