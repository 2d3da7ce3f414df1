#pragma once

// Byte-pair encoding without a list of merges: two neighbours join if their joined text is a token. The best score
// joins first. This is the BPE of SentencePiece, and that of tiktoken, where the score is the negative rank.

#include <cstdint>
#include <string_view>
#include <vector>

#include "io/fallback_tokens.h"
#include "io/piece_model.h"
#include "io/space_cuts.h"

namespace weft {

class ScoreMerger final : public PieceModel {
 public:
  // Keeps references to its arguments.
  ScoreMerger(const Vocabulary& vocabulary, const TokenIndex& index);

  // In O(n log n) for a piece of n bytes.
  void append(std::string_view piece, PieceScratch& scratch, std::vector<int>& ids) const override;

 private:
  int32_t token_of(std::string_view text) const;  // -1: none
  void append_part(std::string_view part, PieceScratch& scratch, std::vector<int>& ids) const;

  const Vocabulary& vocabulary_;
  const TokenIndex& index_;
  FallbackTokens fallback_;
  SpaceCuts cuts_;
  std::vector<uint32_t> ranks_;  // by id, in the order of falling scores; PairJoin::kNone: not a normal token
};

}  // namespace weft
