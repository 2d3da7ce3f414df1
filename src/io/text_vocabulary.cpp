#include "io/text_vocabulary.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/base64.h"
#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/byte_alphabet.h"

namespace weft {
namespace {

struct Ranked {
  std::string bytes;
  std::int64_t rank = 0;
};

std::optional<Ranked> parse_ranked(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == line.npos) return std::nullopt;
  const std::string_view number = line.substr(space + 1);
  Ranked ranked;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), ranked.rank);
  if (error != std::errc() || end != number.data() + number.size() || ranked.rank < 0) return std::nullopt;
  auto bytes = decode_base64(line.substr(0, space));
  if (!bytes || bytes->empty()) return std::nullopt;
  ranked.bytes = std::move(*bytes);
  return ranked;
}

}  // namespace

std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_tiktoken(std::string_view bytes) { return parse_ranked(take_line(bytes)).has_value(); }

Vocabulary read_tiktoken(std::string_view text, const std::string& where) {
  Vocabulary vocabulary;
  vocabulary.model = TokenModel::scores;
  vocabulary.ignore_merges = true;
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    if (line.empty()) continue;
    const auto ranked = parse_ranked(line);
    USER_CHECK(ranked, "[{}] line {} must be base64 and a rank, but is {}", where, number, quote(line));
    const auto count = static_cast<std::int64_t>(vocabulary.tokens.size());
    USER_CHECK(ranked->rank >= count && ranked->rank <= count + kMaxIdGap,
               "[{}] the rank in line {} must be {} or a little more, but is {}", where, number, count, ranked->rank);
    const auto id = static_cast<size_t>(ranked->rank);
    vocabulary.tokens.resize(id + 1);
    vocabulary.kinds.resize(id, TokenKind::unused);
    vocabulary.kinds.push_back(TokenKind::normal);
    vocabulary.scores.resize(id + 1);
    append_in_byte_alphabet(ranked->bytes, vocabulary.tokens.back());
    vocabulary.scores.back() = -static_cast<float>(id);
  }
  // A float has 24 bits, so that scores of higher ids could be equal.
  USER_CHECK(!vocabulary.tokens.empty() && vocabulary.tokens.size() < (size_t{1} << 24),
             "[{}] must have 1 to 2^24 - 1 tokens, but has {}", where, vocabulary.tokens.size());
  return vocabulary;
}

void set_bert_rules(bool lowercase, Vocabulary& vocabulary) {
  vocabulary.model = TokenModel::word_piece;
  vocabulary.byte_alphabet = false;
  vocabulary.normalizer = {BertText{.strip_accents = lowercase, .lowercase = lowercase}};
  vocabulary.steps = {PatternSplit{.pattern = std::string(kWhiteSpacePattern), .behavior = SplitBehavior::removed},
                      PatternSplit{.pattern = bert_punctuation_pattern()}};
  vocabulary.decoder.form = Decoder::Form::word_piece;
  vocabulary.decoder.clean_up = true;
}

Vocabulary read_word_list(std::string_view text, const std::string& where, bool lowercase) {
  Vocabulary vocabulary;
  set_bert_rules(lowercase, vocabulary);
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const auto id = static_cast<int>(vocabulary.tokens.size());
    USER_CHECK(!first_invalid_utf8(line), "[{}] line {} must be UTF-8, but is {}", where, id + 1, quote(line));
    vocabulary.tokens.emplace_back(line);
    TokenKind kind = line.empty() ? TokenKind::unused : TokenKind::normal;
    if (line == "[UNK]") vocabulary.unknown = id;
    if (line == "[PAD]") vocabulary.padding = id;
    if (line == "[CLS]") vocabulary.prefix = {id};
    if (line == "[SEP]") vocabulary.suffix = {id};
    if (line == "[UNK]" || line == "[PAD]" || line == "[CLS]" || line == "[SEP]" || line == "[MASK]") {
      kind = TokenKind::control;
      vocabulary.added_tokens.push_back({.id = id});
    }
    vocabulary.kinds.push_back(kind);
  }
  USER_CHECK(vocabulary.unknown, "[{}] must have a line [UNK], but has none", where);
  return vocabulary;
}

}  // namespace weft
