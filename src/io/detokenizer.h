#pragma once

// Text of a growing list of tokens, given out as it becomes whole: what has been given out never ends inside a
// character and is never taken back.

#include <string>

#include "io/tokenizer.h"

namespace weft {

class StreamingDetokenizer {
 public:
  // Keeps a reference to the tokenizer.
  explicit StreamingDetokenizer(const Tokenizer& tokenizer, DecodeOptions options = {});

  // The text that became whole with this token: everything not yet given out, or "" while that ends inside a
  // character. A byte that can no longer become a character is U+FFFD. An id beyond the vocabulary, which a model with
  // a padded embedding can produce, adds nothing; a negative one is an InternalError.
  std::string push(int id);

  // What is still held back, its incomplete character replaced by U+FFFD. Afterwards it is as new.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  std::string pending_;  // begins at a character
};

}  // namespace weft
