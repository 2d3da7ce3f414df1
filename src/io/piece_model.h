#pragma once

// The interface of the models that compute the tokens of one piece.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "io/pair_joining.h"
#include "io/token_index.h"
#include "io/vocabulary.h"

namespace weft {

// Working memory of a call. Each thread has its own.
struct PieceScratch {
  // The best tokens of the text up to some byte, for unigram models.
  struct Path {
    double score = 0;
    int32_t id = -1;     // of the last token
    int64_t begin = -1;  // of the last token; -1: no tokens end here
  };
  PairScratch pairs;
  std::vector<Path> paths;
  std::vector<Path> best;  // the chosen ones, last first
};

class PieceModel {
 public:
  virtual ~PieceModel() = default;

  // Appends the tokens of a piece, which is shorter than 2 GiB. It is UTF-8, or bytes if the vocabulary is in the
  // byte-level alphabet.
  virtual void append(std::string_view piece, PieceScratch& scratch, std::vector<int>& ids) const = 0;
};

// Whether the model has the token, which an added token may lack.
bool is_in_model(const Vocabulary& vocabulary, size_t id);

// Whether the model makes the token from plain text: it is one of the model, and not a control token.
bool is_made_by_model(const Vocabulary& vocabulary, size_t id);

// Makes the model of a checked vocabulary. It keeps references to both arguments, but does not need the merges later.
// UserError for lists that do not fit each other.
std::unique_ptr<const PieceModel> make_piece_model(const Vocabulary& vocabulary, const TokenIndex& index);

}  // namespace weft
