#pragma once

// What a chat template is rendered over: the variables that transformers gives to it.

#include "base/json.h"
#include "io/checkpoint.h"

namespace weft {

// messages, tools and documents (none), add_generation_prompt, and bos_token, eos_token, pad_token, unk_token where the
// vocabulary has them. An object instead of a list of messages brings its own variables, which win.
Json chat_variables(const Vocabulary& vocabulary, const Json& messages, bool add_generation_prompt);

// The template of a checkpoint; UserError when it has none.
std::string required_chat_template(const Checkpoint& checkpoint);

}  // namespace weft
