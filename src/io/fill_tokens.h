#pragma once

// The tokens by which a model fills in the middle of a text: a prompt is "PREFIX the text before SUFFIX the text after
// MIDDLE", and the answer is what is between them.

#include <optional>

#include "io/vocabulary.h"

namespace weft {

struct FillTokens {
  int prefix = 0, suffix = 0, middle = 0;
  // Before the name of a repository and before that of each of its files; nullopt: the model has none.
  std::optional<int> repository, file;
};

// Those that the file names, else those with well-known texts; nullopt if the model has not all three.
std::optional<FillTokens> fill_tokens(const Vocabulary& vocabulary);

}  // namespace weft
