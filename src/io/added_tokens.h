#pragma once

// Tokens that a folder lists outside of its vocabulary file.

#include <string>

#include "base/json.h"
#include "io/vocabulary.h"

namespace weft {

// `added_tokens_decoder` of tokenizer_config.json: {"ID": {"content": TEXT, "special": true, ...}, ...}.
// UserErrors name `where` and the id; a token that the vocabulary has already must have the same text.
void add_tokens_of_config(const Json& tokenizer_config, const std::string& where, Vocabulary& vocabulary);

// added_tokens.json, or the special tokens of encoding.json: {"TEXT": ID, ...}.
void add_tokens_by_text(const Json& tokens, const std::string& where, bool is_special, Vocabulary& vocabulary);

}  // namespace weft
