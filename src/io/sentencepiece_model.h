#pragma once

// Reads a tokenizer.model of SentencePiece: a ModelProto in protobuf's wire format.
// Layout: sentencepiece_model.proto of google/sentencepiece.

#include <string>
#include <string_view>

#include "io/vocabulary.h"

namespace weft {

// `is_legacy` is the rule of transformers for files without a tokenizer.json: "▁" comes before each stretch between
// added tokens, and otherwise only before the first one. A BPE model gets its beginning-of-text token in front of a
// text, and a Unigram model its end-of-text token after it, as Llama and T5 do.
//
// UserError, which begins with [where], for broken or unsupported models. Unknown fields are skipped.
Vocabulary read_sentencepiece_model(std::string_view bytes, const std::string& where, bool is_legacy);

}  // namespace weft
