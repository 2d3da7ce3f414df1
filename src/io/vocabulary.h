#pragma once

// What a checkpoint says about its byte-level BPE tokenizer, as plain data, whatever file it came from. A Tokenizer
// checks it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "io/pre_tokenizer.h"

namespace weft {

// The sentence on an id of a file's key that is no token: it ends nothing.
inline std::string no_such_token(const std::string& where, std::string_view key, std::int64_t id) {
  return fmt::format("[{}] {} {} is left out: there is no such token", where, key, id);
}

// The numbers are those of GGUF's tokenizer.ggml.token_type.
enum class TokenKind : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5 };

// Two tokens that merge into one; a merge's rank is its place in the list.
struct Merge {
  std::string text;         // both tokens' texts joined: the text of the new token
  uint32_t left_bytes = 0;  // how much of it is the left token's
};

// A token that is found as it stands in the text, before any splitting. A control token counts as special.
struct AddedToken {
  int id = 0;
  bool single_word = false;  // only where no word character stands beside it
  bool strip_left = false;   // takes the white space in front of it along
  bool strip_right = false;
  bool normalized = false;  // looked for in the normalized text
};

enum class Normalizer { none, nfc };

struct Vocabulary {
  // By id. Normal tokens are written in the byte-level alphabet ("Ġthe"), all others as plain text. Texts are distinct,
  // but for ids without a token, which are "" and unused.
  std::vector<std::string> tokens;
  std::vector<TokenKind> kinds;  // as many as tokens
  std::vector<Merge> merges;     // in rank order
  std::vector<AddedToken> added_tokens;

  Normalizer normalizer = Normalizer::none;
  std::vector<PreTokenizerStep> steps;
  // A piece that is a token as a whole is that token, even where merging would not reach it.
  bool ignore_merges = false;

  // Stands for a byte that has no token. None: such a byte is dropped before merging.
  std::optional<int> unknown;
  bool fuse_unknown = false;  // one for a run of such bytes

  // What encoding puts around a text when asked to add special tokens.
  std::vector<int> prefix;
  std::vector<int> suffix;

  // Known by these names; none where the source does not say.
  std::optional<int> bos, eos, padding;
  std::vector<int> end_of_generation;  // ascending

  std::vector<std::string> unknown_keys;  // of its files, of which nothing is known (io/known_keys.h)
  std::vector<std::string> warnings;      // sentences on what is left out
};

}  // namespace weft
