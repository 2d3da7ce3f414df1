#pragma once

// The fields of Anthropic's /v1/messages that are written in another way than those of a chat. They are read as what a
// chat has, so that all that follows is the same.

#include <string>

#include "server/request_fields.h"

namespace weft {

// Each is a ReadField. ApiError 400 for what this server does not do, by its name: blocks that are not text, and tools
// that are not functions of the client.
std::string read_turns(Element value, ApiRequest& request);               // `messages`
std::string read_system(Element value, ApiRequest& request);              // a text or blocks: the system message
std::string read_client_tools(Element value, ApiRequest& request);        // `tools`
std::string read_client_choice(Element value, ApiRequest& request);       // `tool_choice`, `parallel_tool_calls`
std::string read_thinking(Element value, ApiRequest& request);            // `enable_thinking` of the template
std::string read_output_config(Element value, ApiRequest& request);       // format and effort
std::string read_output_format(Element value, ApiRequest& request);       // `response_format`
std::string read_context_management(Element value, ApiRequest& request);  // nothing but what changes no answer

}  // namespace weft
