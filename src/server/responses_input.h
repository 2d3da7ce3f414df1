#pragma once

// The fields of /v1/responses that are written in another way than those of a chat. They are read as what a chat has,
// so that all that follows is the same.

#include <string>

#include "server/request_fields.h"

namespace weft {

// Each is a ReadField. ApiError 400 for what this server does not do, by its name: items, parts of messages and tools
// that are not text and not functions.
std::string read_input(Element value, ApiRequest& request);         // a text or a list of items: `messages`
std::string read_flat_tools(Element value, ApiRequest& request);    // `tools`
std::string read_flat_choice(Element value, ApiRequest& request);   // `tool_choice`
std::string read_text_options(Element value, ApiRequest& request);  // text.format: `response_format`
std::string read_reasoning(Element value, ApiRequest& request);     // reasoning.effort: `reasoning_effort`
std::string read_include(Element value, ApiRequest& request);       // the log probabilities: `logprobs`

}  // namespace weft
