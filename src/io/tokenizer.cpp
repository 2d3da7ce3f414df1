#include "io/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "io/byte_alphabet.h"

namespace weft {
namespace {

// Positions in a text are stored as 32-bit numbers.
constexpr size_t kMaxTextBytes = (size_t{1} << 31) - 1;

void check_ids(std::span<const int> ids, const char* what, size_t token_count) {
  for (const int id : ids) {
    USER_CHECK(id >= 0 && static_cast<size_t>(id) < token_count, "[tokenizer] the {} must be an id below {}, but is {}",
               what, token_count, id);
  }
}

void check_id(std::optional<int> id, const char* what, size_t token_count) {
  if (id) check_ids(std::span(&*id, 1), what, token_count);
}

// The constructor builds its members from the vocabulary, so it must be checked before the first of them.
Vocabulary checked(Vocabulary vocabulary) {
  const size_t count = vocabulary.tokens.size();
  USER_CHECK(count > 0, "[tokenizer] a vocabulary must have tokens, but has none");
  USER_CHECK(vocabulary.kinds.size() == count, "[tokenizer] kinds must be given for {} tokens, but are for {}", count,
             vocabulary.kinds.size());
  for (const AddedToken& token : vocabulary.added_tokens) check_ids(std::span(&token.id, 1), "added token", count);
  check_ids(vocabulary.prefix, "token in front of a text", count);
  check_ids(vocabulary.suffix, "token after a text", count);
  check_ids(vocabulary.end_of_generation, "end-of-generation token", count);
  check_id(vocabulary.unknown, "unknown token", count);
  check_id(vocabulary.bos, "beginning-of-text token", count);
  check_id(vocabulary.eos, "end-of-text token", count);
  check_id(vocabulary.padding, "padding token", count);
  return vocabulary;
}

}  // namespace

Tokenizer::Tokenizer(Vocabulary vocabulary)
    : vocabulary_(checked(std::move(vocabulary))),
      index_(vocabulary_.tokens),
      merger_(vocabulary_, index_),
      pre_tokenizer_(vocabulary_.steps),
      raw_finder_(vocabulary_, false),
      normalized_finder_(vocabulary_, true) {
  vocabulary_.merges = {};
  byte_ends_.reserve(vocabulary_.tokens.size() + 1);
  byte_ends_.push_back(0);
  for (size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
    const TokenKind kind = vocabulary_.kinds[id];
    const bool in_alphabet = kind == TokenKind::normal || kind == TokenKind::unused;
    const std::string& text = vocabulary_.tokens[id];
    // A text outside the alphabet means its own bytes, as in Hugging Face's ByteLevel decoder.
    if (!in_alphabet || !append_from_byte_alphabet(text, bytes_)) bytes_ += text;
    byte_ends_.push_back(bytes_.size());
  }
}

std::vector<int> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  USER_CHECK(text.size() <= kMaxTextBytes, "[tokenizer] a text may have at most {} bytes, but has {}", kMaxTextBytes,
             text.size());
  if (const auto bad = first_invalid_utf8(text))
    fail_user("[tokenizer] text must be UTF-8, but byte {} (0x{:02x}) is not part of a character", *bad,
              static_cast<unsigned>(static_cast<uint8_t>(text[*bad])));
  std::vector<int> ids;
  BytePairMerger::Scratch scratch;
  if (options.add_special) ids = vocabulary_.prefix;
  for (const SpecialTokenFinder::Stretch& outer : raw_finder_.split(text, options.parse_special)) {
    if (outer.id >= 0) {
      ids.push_back(outer.id);
      continue;
    }
    const std::string normal = normalize(text.substr(outer.begin, outer.end - outer.begin), vocabulary_.normalizer);
    // Decomposition can triple a text's length.
    USER_CHECK(normal.size() <= kMaxTextBytes, "[tokenizer] a normalized text may have at most {} bytes, but has {}",
               kMaxTextBytes, normal.size());
    for (const SpecialTokenFinder::Stretch& inner : normalized_finder_.split(normal, options.parse_special)) {
      if (inner.id >= 0) {
        ids.push_back(inner.id);
      } else {
        append_plain(normal.substr(inner.begin, inner.end - inner.begin), scratch, ids);
      }
    }
  }
  if (options.add_special) ids.insert(ids.end(), vocabulary_.suffix.begin(), vocabulary_.suffix.end());
  return ids;
}

void Tokenizer::append_plain(std::string text, BytePairMerger::Scratch& scratch, std::vector<int>& ids) const {
  const Pieces pieces = pre_tokenizer_.split(std::move(text));
  std::string piece_text;
  for (size_t i = 0; i < pieces.ranges.size(); ++i) {
    const std::optional<int> whole =
        vocabulary_.ignore_merges ? whole_token(pieces[i], piece_text) : std::optional<int>();
    if (whole) {
      ids.push_back(*whole);
    } else {
      merger_.append(pieces[i], scratch, ids);
    }
  }
}

// Ordinary text must not become an added token, so only normal tokens are returned.
std::optional<int> Tokenizer::whole_token(std::string_view piece, std::string& text) const {
  text.clear();
  append_in_byte_alphabet(piece, text);
  const std::optional<int> id = index_.find(text, vocabulary_.tokens);
  return id && vocabulary_.kinds[*id] == TokenKind::normal ? id : std::nullopt;
}

void Tokenizer::check_id(int id) const {
  USER_CHECK(id >= 0 && id < token_count(), "[tokenizer] a token id must be 0 to {}, but is {}", token_count() - 1, id);
}

std::string_view Tokenizer::token_bytes(int id) const {
  check_id(id);
  return std::string_view(bytes_).substr(byte_ends_[id], byte_ends_[id + 1] - byte_ends_[id]);
}

bool Tokenizer::is_special(int id) const {
  check_id(id);
  return vocabulary_.kinds[id] == TokenKind::control || vocabulary_.kinds[id] == TokenKind::unknown;
}

std::optional<int> Tokenizer::find(std::string_view token_text) const {
  return index_.find(token_text, vocabulary_.tokens);
}

std::string Tokenizer::decode(std::span<const int> ids, DecodeOptions options) const {
  std::string bytes;
  for (const int id : ids) {
    if (!options.skip_special || !is_special(id)) bytes += token_bytes(id);
  }
  return replace_invalid_utf8(bytes);
}

}  // namespace weft
