#include "io/tokenizer.h"

#include <algorithm>
#include <future>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "io/byte_alphabet.h"
#include "io/detokenizer.h"
#include "io/token_text.h"

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

// The constructor builds its members from the vocabulary, so the vocabulary must be checked before all members.
Vocabulary checked(Vocabulary vocabulary) {
  const size_t count = vocabulary.tokens.size();
  USER_CHECK(count > 0, "[tokenizer] a vocabulary must have tokens, but has none");
  USER_CHECK(vocabulary.kinds.size() == count, "[tokenizer] kinds must be given for {} tokens, but are for {}", count,
             vocabulary.kinds.size());
  for (const AddedToken& token : vocabulary.added_tokens) check_ids(std::span(&token.id, 1), "added token", count);
  check_ids(vocabulary.prefix, "token in front of a text", count);
  check_ids(vocabulary.suffix, "token after a text", count);
  check_ids(vocabulary.between, "token between texts", count);
  check_ids(vocabulary.end_of_generation, "end-of-generation token", count);
  check_id(vocabulary.unknown, "unknown token", count);
  check_id(vocabulary.bos, "beginning-of-text token", count);
  check_id(vocabulary.eos, "end-of-text token", count);
  check_id(vocabulary.padding, "padding token", count);
  return vocabulary;
}

}  // namespace

// Texts and the model are made at the same time, if the system gives another thread: both take milliseconds for large
// vocabularies.
Tokenizer::Tokenizer(Vocabulary vocabulary)
    : vocabulary_(std::make_unique<Vocabulary>(checked(std::move(vocabulary)))),
      normalizer_(vocabulary_->normalizer),
      pre_tokenizer_(vocabulary_->steps),
      raw_finder_(*vocabulary_),
      normalized_finder_(*vocabulary_, &normalizer_) {
  std::future<void> texts = std::async([this] { add_texts(); });
  index_ = std::make_unique<TokenIndex>(vocabulary_->tokens, vocabulary_->may_repeat);
  model_ = make_piece_model(*vocabulary_, *index_);
  vocabulary_->merges = {};
  texts.get();
}

void Tokenizer::add_texts() {
  const size_t count = vocabulary_->tokens.size();
  byte_ends_.reserve(count + 1);
  byte_ends_.push_back(0);
  for (size_t id = 0; id < count; ++id) {
    append_token_text(*vocabulary_, static_cast<int>(id), false, bytes_);
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
  PieceScratch scratch;
  if (options.add_special) ids = vocabulary_->prefix;
  for (const SpecialTokenFinder::Stretch& outer : raw_finder_.split(text, options.parse_special)) {
    if (outer.id >= 0) {
      ids.push_back(outer.id);
      continue;
    }
    const std::string_view original = text.substr(outer.begin, outer.end - outer.begin);
    const std::string normal = normalizer_.apply(original);
    // Normalization can triple a text's length.
    USER_CHECK(normal.size() <= kMaxTextBytes, "[tokenizer] a normalized text may have at most {} bytes, but has {}",
               kMaxTextBytes, normal.size());
    const bool begins_text =
        outer.begin == 0 && !(pre_tokenizer_.needs_first_character() && normalizer_.removes_first(original, normal));
    for (const SpecialTokenFinder::Stretch& inner : normalized_finder_.split(normal, options.parse_special)) {
      if (inner.id >= 0) {
        ids.push_back(inner.id);
      } else {
        const bool is_first = begins_text && inner.begin == 0;
        append_plain(normal.substr(inner.begin, inner.end - inner.begin), is_first, scratch, ids);
      }
    }
  }
  if (options.add_special) ids.insert(ids.end(), vocabulary_->suffix.begin(), vocabulary_->suffix.end());
  return ids;
}

Tokenizer::Pair Tokenizer::encode_pair(std::string_view first, std::string_view second) const {
  USER_CHECK(!vocabulary_->between.empty() || vocabulary_->suffix.empty(),
             "[tokenizer] has no tokens between two texts (post_processor pair)");
  Pair pair{.ids = vocabulary_->prefix};
  const auto add = [&](const std::vector<int>& ids) { pair.ids.insert(pair.ids.end(), ids.begin(), ids.end()); };
  add(encode(first, {.add_special = false}));
  add(vocabulary_->between);
  pair.second = pair.ids.size();
  add(encode(second, {.add_special = false}));
  add(vocabulary_->suffix);
  return pair;
}

void Tokenizer::append_plain(std::string text, bool is_first, PieceScratch& scratch, std::vector<int>& ids) const {
  const Pieces pieces = pre_tokenizer_.split(std::move(text), is_first);
  std::string piece_text;
  for (size_t i = 0; i < pieces.ranges.size(); ++i) {
    const std::optional<int> whole =
        vocabulary_->ignore_merges ? whole_token(pieces[i], piece_text) : std::optional<int>();
    if (whole) {
      ids.push_back(*whole);
    } else {
      model_->append(pieces[i], scratch, ids);
    }
  }
}

// Ordinary text must not become a control token.
std::optional<int> Tokenizer::whole_token(std::string_view piece, std::string& text) const {
  if (vocabulary_->byte_alphabet) {
    text.clear();
    append_in_byte_alphabet(piece, text);
    piece = text;
  }
  const std::optional<int> id = index_->find(piece, vocabulary_->tokens);
  return id && is_made_by_model(*vocabulary_, static_cast<size_t>(*id)) ? id : std::nullopt;
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
  return is_special_kind(vocabulary_->kinds[id]);
}

std::optional<int> Tokenizer::find(std::string_view token_text) const {
  return index_->find(token_text, vocabulary_->tokens);
}

std::string Tokenizer::decode(std::span<const int> ids, DecodeOptions options) const {
  StreamingDetokenizer stream(*this, options);
  std::string text;
  for (const int id : ids) {
    check_id(id);
    text += stream.push(id);
  }
  return text + stream.finish();
}

}  // namespace weft
