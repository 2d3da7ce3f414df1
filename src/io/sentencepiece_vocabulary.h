#pragma once

// A Vocabulary from the tables of a SentencePiece model, which GGUF files and tokenizer.model both contain.

#include <optional>
#include <string>
#include <vector>

#include "io/vocabulary.h"

namespace weft {

struct SentencePieceTables {
  // Where "▁" is put in front of a text that is cut at its added tokens.
  enum class Front {
    every_stretch,
    first_stretch,  // only if the text begins with it, and not with a space
    none,
  };

  std::vector<std::string> tokens;
  std::vector<float> scores;     // one for each token
  std::vector<TokenKind> kinds;  // one for each token
  bool is_unigram = false;       // otherwise BPE
  Front front = Front::every_stretch;
  bool remove_extra_spaces = false;
  std::string character_map;  // io/character_map.h; "": none
  std::optional<int> unknown;
};

Vocabulary vocabulary_from_sentencepiece(SentencePieceTables tables);

}  // namespace weft
