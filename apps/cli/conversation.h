#pragma once

// What a chat template is rendered over: the variables that transformers gives to it.

#include <string>

#include "apps/cli/flags.h"
#include "base/json.h"
#include "io/checkpoint.h"

namespace weft {

// messages, tools and documents (none), add_generation_prompt, and bos_token, eos_token, pad_token, unk_token where the
// vocabulary has them. An object instead of a list of messages brings its own variables, which win.
Json chat_variables(const Vocabulary& vocabulary, const Json& messages, bool add_generation_prompt);

// --chat-template NAME|FILE.
void declare_chat_template(Flags& flags, std::string& given);

// The source of the template to render over the variables: `given`, the name of one of the checkpoint's or a file, if
// it is not ""; else the one named tool_use where there are tools and the checkpoint has it, else its default.
// UserError when there is none. `checkpoint` may be null where a file is given.
std::string chosen_chat_template(const Checkpoint* checkpoint, const std::string& given, const Json& variables);

}  // namespace weft
