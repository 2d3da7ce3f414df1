#pragma once

// Unigram: of all sequences of tokens with the text of the piece, the one with the best sum of scores.

#include <cstdint>
#include <string_view>
#include <vector>

#include "io/fallback_tokens.h"
#include "io/piece_model.h"
#include "io/prefix_index.h"

namespace weft {

class UnigramModel final : public PieceModel {
 public:
  // Keeps references to its arguments. UserError if there is no normal token.
  UnigramModel(const Vocabulary& vocabulary, const TokenIndex& index);

  // Viterbi's algorithm. Of equal sums, the one with the longest last token is chosen. Sums are rounded to float
  // unless Vocabulary::sums_in_double is set, because then the same sums are equal as in SentencePiece 0.2.3.
  void append(std::string_view piece, PieceScratch& scratch, std::vector<int>& ids) const override;

 private:
  template <class Sum>
  void find_paths(std::string_view piece, std::vector<PieceScratch::Path>& paths) const;

  const Vocabulary& vocabulary_;
  FallbackTokens fallback_;
  PrefixIndex prefixes_;
  double unknown_score_ = 0;
};

}  // namespace weft
