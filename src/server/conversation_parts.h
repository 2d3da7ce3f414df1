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

// The conversation, whose contents are texts, with one system message at most before all others. If the template does
// not read those that come later (`reads_late`), their text is a part of the message before them, where that is of the
// user or of a tool, and else a message of the user.
Json with_one_system_message(const Json& messages, bool reads_late);

// For a template of channels, which takes a reasoning or a content beside calls: of a message that has both, the
// content is the end of the reasoning.
Json with_one_text_beside_calls(Json messages);

}  // namespace weft
