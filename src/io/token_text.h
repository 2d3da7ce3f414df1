#pragma once

// The text of one token by the rules of the vocabulary's decoder.

#include <string>

#include "io/vocabulary.h"

namespace weft {

// Appends the text, which is UTF-8 unless the token is a byte or in the byte-level alphabet. The first token of a text
// may have another text than the others.
void append_token_text(const Vocabulary& vocabulary, int id, bool is_first, std::string& text);

}  // namespace weft
