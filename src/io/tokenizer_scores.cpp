#include "io/tokenizer_scores.h"

#include <bit>
#include <string>

#include "base/utf8.h"
#include "io/byte_alphabet.h"

namespace weft {
namespace {

// Numbers in the opposite order of the scores, and equal for equal scores. Scores are finite, and floats in their
// files.
uint32_t rank_of(float score) {
  const auto bits = std::bit_cast<uint32_t>(score == 0.0F ? 0.0F : score);
  const bool is_negative = (bits >> 31) != 0;
  return is_negative ? bits : 0x7FFFFFFF - bits;
}

}  // namespace

ScoreMerger::ScoreMerger(const Vocabulary& vocabulary, const TokenIndex& index)
    : vocabulary_(vocabulary), index_(index), fallback_(vocabulary, index), cuts_(vocabulary) {
  ranks_.reserve(vocabulary.tokens.size());
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    ranks_.push_back(vocabulary.kinds[id] == TokenKind::normal ? rank_of(static_cast<float>(vocabulary.scores[id]))
                                                               : PairJoin::kNone);
}

int32_t ScoreMerger::token_of(std::string_view text) const {
  const auto id = index_.find(text, vocabulary_.tokens);
  return id && ranks_[static_cast<size_t>(*id)] != PairJoin::kNone ? *id : -1;
}

void ScoreMerger::append(std::string_view piece, PieceScratch& scratch, std::vector<int>& ids) const {
  if (vocabulary_.byte_alphabet) {
    std::string text;
    append_in_byte_alphabet(piece, text);
    return append_part(text, scratch, ids);
  }
  for (size_t begin = 0; begin < piece.size();) {
    const size_t end = cuts_.next(piece, begin);
    append_part(piece.substr(begin, end - begin), scratch, ids);
    begin = end;
  }
}

void ScoreMerger::append_part(std::string_view part, PieceScratch& scratch, std::vector<int>& ids) const {
  std::vector<PairSymbol>& symbols = scratch.pairs.symbols;
  symbols.clear();
  for (size_t i = 0; i < part.size();) {
    const size_t length = utf8_step(part, i).length;
    symbols.push_back({token_of(part.substr(i, length)), static_cast<uint32_t>(i)});
    i += length;
  }
  const auto text_end = static_cast<uint32_t>(part.size());
  // A character may join a neighbour even if it is no token itself.
  join_pairs(scratch.pairs, text_end, [&](const PairSymbol& left, const PairSymbol&, uint32_t end) {
    const int32_t id = token_of(part.substr(left.begin, end - left.begin));
    return id < 0 ? PairJoin() : PairJoin{ranks_[static_cast<size_t>(id)], id};
  });
  bool after_unknown = false;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].id >= 0) {
      ids.push_back(symbols[i].id);
      after_unknown = false;
      continue;
    }
    const uint32_t end = i + 1 < symbols.size() ? symbols[i + 1].begin : text_end;
    fallback_.append(part.substr(symbols[i].begin, end - symbols[i].begin), after_unknown,
                     [&](int id, size_t) { ids.push_back(id); });
  }
}

}  // namespace weft
