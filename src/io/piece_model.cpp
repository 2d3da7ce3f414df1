#include "io/piece_model.h"

#include <cmath>

#include "base/error.h"
#include "io/tokenizer_bpe.h"
#include "io/tokenizer_scores.h"
#include "io/tokenizer_unigram.h"
#include "io/tokenizer_word_piece.h"

namespace weft {
namespace {

void check_scores(const Vocabulary& vocabulary) {
  USER_CHECK(vocabulary.scores.size() == vocabulary.tokens.size(),
             "[tokenizer] scores must be given for {} tokens, but are for {}", vocabulary.tokens.size(),
             vocabulary.scores.size());
  for (size_t id = 0; id < vocabulary.scores.size(); ++id)
    USER_CHECK(std::isfinite(vocabulary.scores[id]), "[tokenizer] the score of token {} must be finite, but is {}", id,
               vocabulary.scores[id]);
}

}  // namespace

bool is_in_model(const Vocabulary& vocabulary, size_t id) {
  return vocabulary.in_model.empty() || vocabulary.in_model[id];
}

bool is_made_by_model(const Vocabulary& vocabulary, size_t id) {
  const TokenKind kind = vocabulary.kinds[id];
  if (!vocabulary.in_model.empty()) return vocabulary.in_model[id] && !is_special_kind(kind);
  return kind == TokenKind::normal || kind == TokenKind::user_defined;
}

std::unique_ptr<const PieceModel> make_piece_model(const Vocabulary& vocabulary, const TokenIndex& index) {
  CHECK(vocabulary.in_model.empty() || vocabulary.in_model.size() == vocabulary.tokens.size(),
        "[tokenizer] in_model has {} entries for {} tokens", vocabulary.in_model.size(), vocabulary.tokens.size());
  switch (vocabulary.model) {
    case TokenModel::scores:
      check_scores(vocabulary);
      return std::make_unique<ScoreMerger>(vocabulary, index);
    case TokenModel::unigram:
      check_scores(vocabulary);
      return std::make_unique<UnigramModel>(vocabulary, index);
    case TokenModel::word_piece:
      return std::make_unique<WordPieceModel>(vocabulary);
    case TokenModel::merges:
      break;
  }
  return std::make_unique<BytePairMerger>(vocabulary, index);
}

}  // namespace weft
