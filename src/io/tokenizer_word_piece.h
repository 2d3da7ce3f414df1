#pragma once

// WordPiece: from left to right, the longest token that fits. A word that no sequence of tokens fits is unknown.

#include <string_view>
#include <vector>

#include "io/piece_model.h"
#include "io/prefix_index.h"

namespace weft {

class WordPieceModel final : public PieceModel {
 public:
  // Keeps a reference to the vocabulary. UserError if it has no unknown token.
  explicit WordPieceModel(const Vocabulary& vocabulary);

  void append(std::string_view word, PieceScratch& scratch, std::vector<int>& ids) const override;

 private:
  const Vocabulary& vocabulary_;
  int unknown_ = 0;
  PrefixIndex first_;         // tokens that begin a word
  PrefixIndex continuation_;  // the others, without vocabulary_.continuation
};

}  // namespace weft
