#pragma once

// Vocabularies of pieces with scores for tests, and the tokens that a model makes of a text.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/piece_model.h"
#include "io/vocabulary.h"

namespace weft {

inline Vocabulary scored_pieces(TokenModel model, const std::vector<std::pair<std::string, float>>& pieces) {
  Vocabulary vocabulary;
  vocabulary.model = model;
  vocabulary.byte_alphabet = false;
  for (const auto& [text, score] : pieces) {
    vocabulary.tokens.push_back(text);
    vocabulary.scores.push_back(score);
    vocabulary.kinds.push_back(TokenKind::normal);
  }
  return vocabulary;
}

inline std::vector<int> tokens_of(const Vocabulary& vocabulary, std::string_view text) {
  const TokenIndex index(vocabulary.tokens);
  PieceScratch scratch;
  std::vector<int> ids;
  make_piece_model(vocabulary, index)->append(text, scratch, ids);
  return ids;
}

}  // namespace weft
