#pragma once

// Tools and tool calls in the messages that a chat template renders.

#include <string>

#include "base/json.h"

namespace weft {

// The messages with the arguments of their tool calls as objects, which templates expect; the API has them as text.
// ApiError 400 for arguments that are not JSON. `field` is the name that the request has for the messages.
Json with_parsed_arguments(Json messages, const char* field = "messages");

// For a template that does not read tools: the system message lists them and says how to call them, in hermes' dialect.
Json with_tools_in_system_message(Json messages, const Json& tools);
// For a template that does not read tool calls: calls are in the content of their message, and their results are in
// messages of the user.
Json with_calls_as_content(Json messages);

}  // namespace weft
