#pragma once

// Where a text with "▁" for spaces can be cut without any effect on its tokens, so that a long text is not one piece.

#include <string_view>

#include "io/vocabulary.h"

namespace weft {

class SpaceCuts {
 public:
  explicit SpaceCuts(const Vocabulary& vocabulary);

  // The end of the part that begins at `begin`: in front of the first mark that follows another character, since no
  // token contains both. The end of the text, if a token does.
  size_t next(std::string_view text, size_t begin) const;

 private:
  bool can_cut_ = false;
};

}  // namespace weft
