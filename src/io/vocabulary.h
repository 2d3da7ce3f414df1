#pragma once

// The tokenizer of a checkpoint as plain data, independent of the file format. The Tokenizer checks it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "io/decoder.h"
#include "io/normalizer.h"
#include "io/pre_tokenizer.h"

namespace weft {

// The warning for a key whose id is not a token: that id is ignored and ends nothing.
inline std::string no_such_token(const std::string& where, std::string_view key, std::int64_t id) {
  return fmt::format("[{}] {} {} is left out: there is no such token", where, key, id);
}

// The numbers are those of GGUF's tokenizer.ggml.token_type.
enum class TokenKind : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

// Whether the text of such a token in a prompt becomes the token only if special tokens are parsed.
constexpr bool is_special_kind(TokenKind kind) { return kind == TokenKind::control || kind == TokenKind::unknown; }

// How a piece of text becomes tokens.
enum class TokenModel {
  merges,      // byte-pair encoding (BPE) by a list of merges
  scores,      // BPE: neighbours join if their joined text is a token, and the best score joins first
  unigram,     // the sequence of tokens with the best sum of scores
  word_piece,  // the longest token that fits, from left to right
};

// Two tokens that merge into one. The rank of a merge is its index in the list.
struct Merge {
  std::string text;         // both texts joined: the text of the new token
  uint32_t left_bytes = 0;  // bytes of `text` that are the left token
};

// A token that is matched verbatim in the text before any splitting.
struct AddedToken {
  int id = 0;
  bool single_word = false;  // only if no word character is next to it
  bool strip_left = false;   // includes the white space before it
  bool strip_right = false;
  bool normalized = false;  // matched in the normalized text
};

// SentencePiece's mark of a space, "▁".
inline constexpr std::string_view kSpaceMark = "\u2581";

// The ids of a file may have gaps, but the list by id must not become much longer than the number of tokens.
inline constexpr std::int64_t kMaxIdGap = 65536;

struct Vocabulary {
  TokenModel model = TokenModel::merges;
  // Normal tokens are written in the byte-level alphabet ("Ġthe"), and all bytes have a token. Otherwise they are
  // written as text ("▁the"), and characters without a token become tokens of kind byte ("<0xE2>"), if there are any.
  bool byte_alphabet = true;
  // The pre-tokenizer ByteLevel is in no sequence. Only then does tokenizer_config.json set its add_prefix_space.
  bool byte_level_alone = false;

  // Indexed by id. Texts are distinct, except that an id without a token is "" and unused.
  std::vector<std::string> tokens;
  bool may_repeat = false;       // several tokens may have the same text; then it becomes the last of them
  std::vector<TokenKind> kinds;  // one for each token
  std::vector<Merge> merges;     // TokenModel::merges: in rank order
  std::vector<double> scores;    // TokenModel::scores and unigram: one for each token
  std::vector<AddedToken> added_tokens;
  // Whether the model has the token, which an added token may lack; one for each token. tokenizer.json lists byte
  // tokens among the others, so that their spellings in a text become them. Empty: unigram and word_piece have the
  // tokens of the kinds normal and user_defined, and the models of pairs have all.
  std::vector<bool> in_model;
  // TokenModel::unigram: sums of scores are those of tokenizer.json, in double. Otherwise they are SentencePiece's, in
  // float.
  bool sums_in_double = false;

  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> steps;
  // A piece whose whole text is a token becomes that token, even if merging would not produce it.
  bool ignore_merges = false;

  // TokenModel::word_piece: a token inside a word begins with this text, and a word of more characters is unknown.
  std::string continuation = "##";
  size_t max_word_characters = 100;

  // The token for text that has no token. Nullopt: such text is dropped.
  std::optional<int> unknown;
  bool fuse_unknown = false;  // one token for a run of such text

  Decoder decoder;

  // The tokens that encoding adds before and after a text if add_special is set.
  std::vector<int> prefix;
  std::vector<int> suffix;
  // The same between two texts that are encoded as one; empty: the files do not say.
  std::vector<int> between;
  // No file of the vocabulary has them: they are what add_bos_token and add_eos_token of tokenizer_config.json say.
  bool ends_by_config = false;

  // Tokens with these roles; nullopt if the source does not name them.
  std::optional<int> bos, eos, padding;
  std::vector<int> end_of_generation;  // ascending

  // The tokens by which a model fills in the middle of a text. Only GGUF names them; nullopt: see fill_tokens().
  std::optional<int> fill_prefix, fill_suffix, fill_middle;

  // The texts that chat templates know by these names (bos_token, sep_token, ...), where the source has them; nullopt:
  // it says that there is no such token. A name that is not here has the text of its role above.
  std::map<std::string, std::optional<std::string>> named_texts;

  std::vector<std::string> unknown_keys;  // keys of its files that no table has (io/known_keys.h)
  std::vector<std::string> warnings;      // sentences about ignored values
};

}  // namespace weft
