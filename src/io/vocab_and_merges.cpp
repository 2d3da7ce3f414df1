#include "io/vocab_and_merges.h"

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <simdjson.h>

#include "base/error.h"
#include "base/text.h"
#include "io/byte_order_mark.h"
#include "io/text_vocabulary.h"
#include "io/tokenizer_json_parts.h"

namespace weft {
namespace {

using TokenSet = std::unordered_set<std::string_view>;

void read_tokens(const VocabularyText& vocab, Vocabulary& vocabulary) {
  const std::string& where = vocab.where;
  const std::string_view text = without_byte_order_mark(vocab.text);
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const simdjson::error_code error = parser.parse(text.data(), text.size()).get(root);
  if (error) fail_user("[{}] must be JSON: {}", where, simdjson::error_message(error));
  simdjson::dom::object entries;
  USER_CHECK(!root.get(entries), "[{}] must map tokens to ids, but is {}", where, tokenizer_json::shown(root));
  const auto count = static_cast<std::int64_t>(entries.size());
  USER_CHECK(count > 0, "[{}] must have tokens, but has none", where);
  const std::int64_t most = count - 1 + kMaxIdGap;
  for (const simdjson::dom::key_value_pair entry : entries) {
    std::int64_t id = -1;
    const bool fits = entry.value.get(id) == simdjson::SUCCESS && id >= 0 && id <= most;
    USER_CHECK(fits && !entry.key.empty(), "[{}] {} must have an id of 0 to {}, but has {}", where, quote(entry.key),
               most, tokenizer_json::shown(entry.value));
    const auto index = static_cast<size_t>(id);
    if (index >= vocabulary.tokens.size()) {
      vocabulary.tokens.resize(index + 1);
      vocabulary.kinds.resize(index + 1, TokenKind::unused);
    }
    std::string& token = vocabulary.tokens[index];
    USER_CHECK(token.empty(), "[{}] {} must have an id of its own, but {} is that of {}", where, quote(entry.key), id,
               quote(token));
    token = entry.key;
    vocabulary.kinds[index] = TokenKind::normal;
  }
}

TokenSet set_of(const std::vector<std::string>& tokens, const std::string& where) {
  TokenSet set;
  set.reserve(tokens.size());
  for (const std::string& token : tokens) {
    const bool is_new = token.empty() || set.insert(token).second;
    USER_CHECK(is_new, "[{}] {} must have one id, but has several", where, quote(token));
  }
  return set;
}

void read_merges(const VocabularyText& merges, const TokenSet& tokens, std::vector<Merge>& result) {
  const std::string& where = merges.where;
  std::string_view text = without_byte_order_mark(merges.text);
  std::unordered_map<std::string_view, size_t> line_of_merge;
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    if (line.empty() || line.starts_with("#version")) continue;
    const size_t space = line.find(' ');
    const bool is_pair =
        space != line.npos && space > 0 && space + 1 < line.size() && line.find(' ', space + 1) == line.npos;
    USER_CHECK(is_pair, "[{}] line {} must be two tokens with a space between them, but is {}", where, number,
               quote(line));
    const auto [earlier, is_new] = line_of_merge.emplace(line, number);
    USER_CHECK(is_new, "[{}] line {} must be a new merge, but {} is in line {} already", where, number, quote(line),
               earlier->second);
    Merge merge{.text = std::string(line), .left_bytes = static_cast<std::uint32_t>(space)};
    merge.text.erase(space, 1);
    for (const std::string_view token : {line.substr(0, space), line.substr(space + 1), std::string_view(merge.text)})
      USER_CHECK(tokens.contains(token), "[{}] line {} must be of tokens of vocab.json, which has no {}", where, number,
                 quote(token));
    result.push_back(std::move(merge));
  }
}

}  // namespace

Vocabulary read_vocab_and_merges(const VocabularyText& vocab, const VocabularyText& merges) {
  Vocabulary vocabulary;
  read_tokens(vocab, vocabulary);
  read_merges(merges, set_of(vocabulary.tokens, vocab.where), vocabulary.merges);
  return vocabulary;
}

}  // namespace weft
