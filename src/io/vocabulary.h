#pragma once

// The byte-level BPE tokenizer of a checkpoint as plain data, independent of the file format. The Tokenizer checks it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "io/pre_tokenizer.h"

namespace weft {

// The warning for a key whose id is not a token: that id is ignored and ends nothing.
inline std::string no_such_token(const std::string& where, std::string_view key, std::int64_t id) {
  return fmt::format("[{}] {} {} is left out: there is no such token", where, key, id);
}

// The numbers are those of GGUF's tokenizer.ggml.token_type.
enum class TokenKind : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5 };

// Two tokens that merge into one. The rank of a merge is its index in the list.
struct Merge {
  std::string text;         // both texts joined: the text of the new token
  uint32_t left_bytes = 0;  // bytes of `text` that are the left token
};

// A token that is matched verbatim in the text before any splitting. A control token counts as special.
struct AddedToken {
  int id = 0;
  bool single_word = false;  // only if no word character is next to it
  bool strip_left = false;   // includes the white space before it
  bool strip_right = false;
  bool normalized = false;  // matched in the normalized text
};

enum class Normalizer { none, nfc };

struct Vocabulary {
  // Indexed by id. Normal tokens are written in the byte-level alphabet ("Ġthe"), all others as plain text. Texts are
  // distinct, except that an id without a token is "" and unused.
  std::vector<std::string> tokens;
  std::vector<TokenKind> kinds;  // one for each token
  std::vector<Merge> merges;     // in rank order
  std::vector<AddedToken> added_tokens;

  Normalizer normalizer = Normalizer::none;
  std::vector<PreTokenizerStep> steps;
  // A piece whose whole text is a token becomes that token, even if merging would not produce it.
  bool ignore_merges = false;

  // The token for a byte that has no token. Nullopt: such a byte is dropped before merging.
  std::optional<int> unknown;
  bool fuse_unknown = false;  // one token for a run of such bytes

  // The tokens that encoding adds before and after a text if add_special is set.
  std::vector<int> prefix;
  std::vector<int> suffix;

  // Tokens with these roles; nullopt if the source does not name them.
  std::optional<int> bos, eos, padding;
  std::vector<int> end_of_generation;  // ascending

  std::vector<std::string> unknown_keys;  // keys of its files that no table has (io/known_keys.h)
  std::vector<std::string> warnings;      // sentences about ignored values
};

}  // namespace weft
