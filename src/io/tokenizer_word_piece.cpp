#include "io/tokenizer_word_piece.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"

namespace weft {
namespace {

std::vector<PrefixIndex::Entry> word_entries(const Vocabulary& vocabulary, bool continuations) {
  std::vector<PrefixIndex::Entry> entries;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    std::string_view text = vocabulary.tokens[id];
    if (!is_made_by_model(vocabulary, id)) continue;
    if (continuations) {
      if (!text.starts_with(vocabulary.continuation)) continue;
      text.remove_prefix(vocabulary.continuation.size());
    }
    if (!text.empty()) entries.push_back({text, static_cast<int32_t>(id)});
  }
  return entries;
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !is_utf8_continuation(c); }));
}

}  // namespace

WordPieceModel::WordPieceModel(const Vocabulary& vocabulary)
    : vocabulary_(vocabulary), first_(word_entries(vocabulary, false)), continuation_(word_entries(vocabulary, true)) {
  USER_CHECK(vocabulary.unknown, "[tokenizer] a WordPiece vocabulary must have an unknown token, but has none");
  unknown_ = *vocabulary.unknown;
}

void WordPieceModel::append(std::string_view word, PieceScratch&, std::vector<int>& ids) const {
  if (count_characters(word) > vocabulary_.max_word_characters) {
    ids.push_back(unknown_);
    return;
  }
  const size_t count_before = ids.size();
  for (size_t begin = 0; begin < word.size();) {
    size_t longest = 0;
    int32_t token = -1;
    (begin == 0 ? first_ : continuation_).visit_prefixes(word.substr(begin), [&](size_t length, int32_t id) {
      if (token >= 0) return;  // the first one is the longest
      longest = length;
      token = id;
    });
    if (token < 0) {
      ids.resize(count_before);
      ids.push_back(unknown_);
      return;
    }
    ids.push_back(token);
    begin += longest;
  }
}

}  // namespace weft
