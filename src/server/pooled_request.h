#pragma once

// Requests whose answers are made of pooled hidden states: /v1/embeddings, /score, /rerank, /classify and /pooling.

#include "server/prepared_request.h"

namespace weft {

// Readers of fields, as in request_fields.h: a text, or a list of texts and of objects that have a `text`.
std::string read_first_texts(simdjson::dom::element value, ApiRequest& request);
std::string read_second_texts(simdjson::dom::element value, ApiRequest& request);

// prepare() of such a request, whose fields are checked.
PreparedRequest prepare_pooled(ApiRequest request, const ServedModel& model);

}  // namespace weft
