#pragma once

// A Vocabulary from a Hugging Face tokenizer.json (the format of the "tokenizers" library, version 1.0).

#include <string_view>

#include "io/vocabulary.h"

namespace weft {

// Supports byte-level BPE: model BPE (merges as texts or pairs, ignore_merges, unk_token, fuse_unk); normalizer null,
// NFC or a Sequence; pre-tokenizer Split, Digits, ByteLevel or a Sequence that ends with ByteLevel; added_tokens;
// post-processor ByteLevel, TemplateProcessing (its form for one text) or a Sequence; decoder ByteLevel, Fuse or a
// Sequence. `truncation` and `padding` are not read; the caller decides them.
//
// `bos` is the first token that is added before a text; the file names neither an end nor a padding token.
//
// UserError for text that is not JSON, for a missing or mistyped member, and for anything that is not in this list. The
// message names the member and its value.
Vocabulary read_tokenizer_json(std::string_view json_text);

}  // namespace weft
