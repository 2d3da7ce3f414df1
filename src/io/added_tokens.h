#pragma once

// Tokens that a folder lists outside of its vocabulary file.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "io/config_fields.h"
#include "io/vocabulary.h"

namespace weft {

// The keys of tokenizer_config.json that name a special token.
inline constexpr const char* kNamedTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                               "pad_token", "cls_token", "mask_token"};
inline constexpr const char* kTokenLists[] = {"additional_special_tokens", "extra_special_tokens"};

// The text of a token, which is the key's value as such, or in an object as `content`.
std::optional<std::string> named_text(const JsonFields& fields, std::string_view key);

std::optional<int> find_token(std::string_view text, const Vocabulary& vocabulary);

// `added_tokens_decoder` of tokenizer_config.json: {"ID": {"content": TEXT, "special": true, ...}, ...}.
// UserErrors name `where` and the id; a token that the vocabulary has already must have the same text.
void add_tokens_of_config(const Json& tokenizer_config, const std::string& where, Vocabulary& vocabulary);

// The same for a folder with tokenizer.json, as transformers reads it: tokens of the vocabulary become added tokens as
// `added_tokens_decoder` has them, and the special tokens that tokenizer_config.json names become control tokens. Ids
// are those of tokenizer.json; texts that it has not are ignored.
void mark_tokens_of_config(const Json& tokenizer_config, const std::string& where, Vocabulary& vocabulary);

// A token that tokenizer_config.json names by one of the keys above. Its id is the vocabulary's.
struct SpecialToken {
  std::string text;
  AddedToken flags;
};
std::vector<SpecialToken> special_tokens_of(const Json& tokenizer_config, const std::string& where);

// Those of them that the vocabulary has become control tokens, unless they are added tokens already.
void mark_special_tokens(const Json& tokenizer_config, const std::string& where, Vocabulary& vocabulary);

// added_tokens.json, or the special tokens of encoding.json: {"TEXT": ID, ...}.
void add_tokens_by_text(const Json& tokens, const std::string& where, bool is_special, Vocabulary& vocabulary);

}  // namespace weft
