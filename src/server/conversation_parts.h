#pragma once

// What the readers of several APIs share: members of their JSON, and the conversation that they make of it, which is
// that of a chat.

#include <string>

#include "base/json.h"

namespace weft {

bool has_text(const Json& object, const char* key);
// Whether the member is there and not null.
bool is_given(const Json& object, const char* key);

// The last message if it is of the assistant, so that more may be added to it; else nullptr.
Json* last_answer(Json& messages);
// Gives each message that has none a content: null beside calls, else "".
void add_missing_contents(Json& messages);

// The conversation after the instructions, which are a system message.
Json with_instructions(Json messages, const std::string& instructions);

}  // namespace weft
