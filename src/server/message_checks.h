#pragma once

#include "base/json.h"

namespace weft {

// The types within the messages of a chat: throws WrongPart, which names the message and its part. Templates read the
// members, and one of a wrong type would give a prompt that the client did not mean. Which types of parts and which
// roles there are is checked where the prompt is made.
void check_messages(const Json& messages);

}  // namespace weft
