#pragma once

// Vocabularies that are plain text: tiktoken's ranks and BERT's vocab.txt.

#include <string>
#include <string_view>

#include "io/vocabulary.h"

namespace weft {

// Cuts the next line off, and returns it without its line end.
std::string_view take_line(std::string_view& text);

// Whether the text begins like a tiktoken file. A tokenizer.model is either that or a SentencePiece model.
bool is_tiktoken(std::string_view bytes);

// Lines of a token's bytes in base64 and its rank, which is its id, in ascending order. The lowest rank joins first.
// The file has neither special tokens nor a pattern: Vocabulary::steps stays empty. UserErrors begin with [where].
Vocabulary read_tiktoken(std::string_view text, const std::string& where);

// A token of WordPiece in each line; the number of the line is its id.
Vocabulary read_word_list(std::string_view text, const std::string& where, bool lowercase);

// The WordPiece steps and decoder of BERT.
void set_bert_rules(bool lowercase, Vocabulary& vocabulary);

}  // namespace weft
