#pragma once

// The variables for rendering a chat template; they are those that transformers passes to it.

#include <string>

#include "apps/cli/flags.h"
#include "base/json.h"
#include "io/checkpoint.h"

namespace weft {

// Returns messages, tools and documents (none), add_generation_prompt, and bos_token, eos_token, pad_token, unk_token
// if the vocabulary has them. `messages` may be an object instead of a list; its keys are then variables that override
// the others.
Json chat_variables(const Vocabulary& vocabulary, const Json& messages, bool add_generation_prompt);

// Declares --chat-template NAME|FILE.
void declare_chat_template(Flags& flags, std::string& given);

// Returns the source of the template to render. If `given` is not "", it is the name of one of the checkpoint's
// templates or a file. Otherwise it is the checkpoint's template tool_use if there are tools and that template exists,
// else the checkpoint's default. Throws UserError if there is none. `checkpoint` may be null if a file is given.
std::string chosen_chat_template(const Checkpoint* checkpoint, const std::string& given, const Json& variables);

}  // namespace weft
