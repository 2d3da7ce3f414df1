#pragma once

// A Vocabulary from the metadata of a GGUF file.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/vocabulary.h"

namespace weft {

// The values of the keys "tokenizer.ggml.*", as the file has them, unchecked.
struct GgufTokenizerFields {
  std::string model;                // .model
  std::string pre;                  // .pre; "" when the key is missing
  std::vector<std::string> tokens;  // .tokens
  std::vector<int32_t> token_type;  // .token_type; empty when the key is missing: all normal
  std::vector<std::string> merges;  // .merges, "left right"
  std::optional<int64_t> bos_token_id, eos_token_id, eot_token_id, eom_token_id, padding_token_id;
  std::optional<bool> add_bos_token, add_eos_token;  // missing: what models of this .pre do
};

// UserError, naming the key: a model other than "gpt2" (byte-level BPE), an unknown .pre (with the known ones), a merge
// that is not two texts, token types that are not as many as tokens, an id outside the vocabulary.
//
// tokenizer.ggml.unknown_token_id is not among the fields: Hugging Face and llama.cpp both drop bytes without a token
// from such a model's text.
Vocabulary vocabulary_from_gguf_fields(GgufTokenizerFields fields);

// How models of one tokenizer.ggml.pre split text. Source: their publishers' tokenizer.json.
struct GgufPreTokenizer {
  std::string_view name;
  std::vector<PreTokenizerStep> steps;
  Normalizer normalizer = Normalizer::none;
  bool ignore_merges = false;
  bool add_bos = false;
};

// Sorted by name.
const std::vector<GgufPreTokenizer>& gguf_pre_tokenizers();

}  // namespace weft
