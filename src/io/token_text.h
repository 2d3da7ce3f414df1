#pragma once

// The text of one token by the rules of the vocabulary's decoder.

#include <cstdint>
#include <optional>
#include <string>

#include "io/vocabulary.h"

namespace weft {

// The byte that the decoder makes of a token; nullopt for another token.
std::optional<uint8_t> byte_of_token(const Vocabulary& vocabulary, int id);

// Appends the text, which is UTF-8 unless the token is a byte or in the byte-level alphabet. The first token of a text
// may have another text than the others.
void append_token_text(const Vocabulary& vocabulary, int id, bool is_first, std::string& text);

}  // namespace weft
