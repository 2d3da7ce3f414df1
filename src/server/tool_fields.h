#pragma once

// The fields about tools of a chat.

#include <string>

#include "server/request_fields.h"

namespace weft {

// Each is a ReadField.
std::string read_tools(Element value, ApiRequest& request);        // `tools`
std::string read_tool_choice(Element value, ApiRequest& request);  // `tool_choice`

}  // namespace weft
