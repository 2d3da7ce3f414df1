#pragma once

// A Vocabulary from a Hugging Face tokenizer.json (the format of the "tokenizers" library, version 1.0).

#include <string_view>

#include "io/vocabulary.h"

namespace weft {

// Reads byte-level BPE: model BPE (merges as texts or pairs, ignore_merges, unk_token, fuse_unk); normalizer null, NFC
// or a Sequence; pre-tokenizer Split, Digits, ByteLevel or a Sequence that ends with ByteLevel; added_tokens;
// post-processor ByteLevel, TemplateProcessing (its form for one text) or a Sequence; decoder ByteLevel, Fuse or a
// Sequence. `truncation` and `padding` are a caller's business and not read.
//
// `bos` is the first token put in front of a text; the file names neither an end nor a padding token.
//
// UserError: text that is not JSON, a missing or mistyped member, anything that this list leaves out; it says which
// member and what it has.
Vocabulary read_tokenizer_json(std::string_view json_text);

}  // namespace weft
