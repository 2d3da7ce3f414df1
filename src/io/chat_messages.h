#pragma once

// The messages of a conversation as transformers passes them to a chat template, and the prompt for an answer that is
// already begun.

#include <string>

#include "base/json.h"
#include "io/chat_template.h"

namespace weft {

// Returns the messages without keys that are null, since many templates only ask whether a key exists. The reasoning of
// a message, which callers name reasoning_content, thinking or reasoning, is in reasoning_content and in thinking.
// UserError unless the messages are a list of objects.
Json template_messages(const Json& messages);

// Renders `variables`, whose last message is the begin of an answer: the text ends with the content of this message,
// without the marks that the template writes after it. UserError if there is no such message, or if the template does
// not write its content.
std::string render_unfinished(const ChatTemplate& chat_template, Json variables);

// Returns the message of the assistant with this answer. An answer of gpt-oss, whose text has the marks of several
// messages (io/message_marks.h), has what is for the user as its content and the rest as its thinking.
Json answer_message(const std::string& text);

}  // namespace weft
