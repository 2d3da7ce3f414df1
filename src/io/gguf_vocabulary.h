#pragma once

// A Vocabulary from the metadata of a GGUF file.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  std::vector<float> scores;        // .scores
  std::string character_map;        // .precompiled_charsmap; "": none
  std::optional<int64_t> bos_token_id, eos_token_id, padding_token_id, unknown_token_id;
  std::optional<int64_t> separator_token_id, cls_token_id;
  std::optional<int64_t> fim_pre_token_id, fim_suf_token_id, fim_mid_token_id;
  std::vector<std::pair<std::string_view, int64_t>> other_ends;     // those of gguf_end_keys() that the file has
  std::optional<bool> add_bos_token, add_eos_token, add_sep_token;  // missing: the default of this model or .pre
  std::optional<bool> add_space_prefix, remove_extra_whitespaces;   // of SentencePiece
  std::optional<bool> lowercase;                                    // .normalizer.lowercase, of WordPiece
};

// The keys after "tokenizer.ggml.", other than eos_token_id, whose token ends generation.
std::span<const std::string_view> gguf_end_keys();

// The models are "gpt2" (byte-level BPE), "gemma4" (BPE with byte fallback), "llama" (BPE of SentencePiece), "t5"
// (Unigram of SentencePiece) and "bert" (WordPiece). A UserError names the key: another model or an unknown .pre (with
// the nearest known one), a merge that is not two texts, a list that has not one element for each token, and an id
// outside the vocabulary.
//
// unknown_token_id is ignored for "gpt2" because Hugging Face and llama.cpp both drop bytes that have no token from the
// text of such a model.
Vocabulary vocabulary_from_gguf_fields(GgufTokenizerFields fields);

}  // namespace weft
