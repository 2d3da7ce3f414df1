#pragma once

// Converts a growing list of tokens to text and returns the text as soon as it is complete. The returned text never
// ends inside a character and is never revised.

#include <string>

#include "io/tokenizer.h"

namespace weft {

class StreamingDetokenizer {
 public:
  // Keeps a reference to the tokenizer.
  explicit StreamingDetokenizer(const Tokenizer& tokenizer, DecodeOptions options = {});

  // Adds a token and returns all text that was not returned yet, or "" while that text ends inside a character. A byte
  // that can no longer become part of a character is U+FFFD. An id above the vocabulary adds nothing, because a model
  // with a padded embedding can produce it. A negative id is an InternalError.
  std::string push(int id);

  // Returns the remaining text, with an incomplete last character replaced by U+FFFD, and resets the object.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  std::string pending_;  // begins at a character
};

}  // namespace weft
