#pragma once

// The marks around the messages of an answer.

#include "io/vocabulary.h"

namespace weft {

// An answer of gpt-oss has several messages, each for a channel. Its files give the marks between them as control
// tokens, whose text is not shown, but without it the messages cannot be told apart. This makes them user-defined
// tokens. Other vocabularies are not changed.
void show_message_marks(Vocabulary& vocabulary);

}  // namespace weft
