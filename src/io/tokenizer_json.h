#pragma once

// A Vocabulary from a Hugging Face tokenizer.json (the format of the "tokenizers" library, version 1.0).

#include <string_view>

#include "io/vocabulary.h"

namespace weft {

// Supports the models BPE (with merges as texts or pairs, in the byte-level alphabet or with byte_fallback), Unigram
// and WordPiece; the normalizers, pre-tokenizers and decoders of tokenizer_json_steps.cpp, alone or in a Sequence;
// added_tokens; post-processors ByteLevel, TemplateProcessing (its form for one text), BertProcessing and
// RobertaProcessing. `truncation` and `padding` are not read; the caller decides them.
//
// `bos` is the first token that is added before a text; the file names neither an end nor a padding token.
//
// UserError for text that is not JSON, for a missing or mistyped member, and for anything that is not in this list. The
// message names the member and its value.
Vocabulary read_tokenizer_json(const std::string& text);

}  // namespace weft
