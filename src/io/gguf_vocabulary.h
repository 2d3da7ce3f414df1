#pragma once

// A Vocabulary from the metadata of a GGUF file.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/vocabulary.h"

namespace weft {

// The unchecked values of the keys "tokenizer.ggml.*".
struct GgufTokenizerFields {
  std::string model;                // .model
  std::string pre;                  // .pre; "" if the key is missing
  std::vector<std::string> tokens;  // .tokens
  std::vector<int32_t> token_type;  // .token_type; empty if the key is missing: all are normal
  std::vector<std::string> merges;  // .merges, "left right"
  std::optional<int64_t> bos_token_id, eos_token_id, eot_token_id, eom_token_id, padding_token_id;
  std::optional<bool> add_bos_token, add_eos_token;  // missing: the default of this .pre
};

// A UserError names the key. Errors are: a model other than "gpt2" (byte-level BPE), an unknown .pre (the message lists
// the known ones), a merge that is not two texts, a number of token types that differs from the number of tokens, and
// an id outside the vocabulary.
//
// The fields omit tokenizer.ggml.unknown_token_id because Hugging Face and llama.cpp both drop bytes that have no token
// from the text of such a model.
Vocabulary vocabulary_from_gguf_fields(GgufTokenizerFields fields);

// How models with one value of tokenizer.ggml.pre split text. Source: the tokenizer.json files of their publishers.
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
