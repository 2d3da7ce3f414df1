#pragma once

// Readers of fields that OpenAI's endpoints share, as in request_fields.h.

#include <string>

#include "server/request_fields.h"

namespace weft {

std::string read_prompt(Element value, ApiRequest& request);
std::string read_stop(Element value, ApiRequest& request);
std::string read_stop_ids(Element value, ApiRequest& request);
std::string read_truncation_side(Element value, ApiRequest& request);
std::string read_logit_bias(Element value, ApiRequest& request);
std::string read_allowed_ids(Element value, ApiRequest& request);
std::string read_bad_words(Element value, ApiRequest& request);
std::string read_tokens(Element value, ApiRequest& request);
std::string read_messages(Element value, ApiRequest& request);
std::string read_documents(Element value, ApiRequest& request);
std::string read_stream_options(Element value, ApiRequest& request);

}  // namespace weft
