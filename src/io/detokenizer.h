#pragma once

// Converts a growing list of tokens to text and returns the text as soon as it is complete. The returned text never
// ends inside a character and is never revised.

#include <span>
#include <string>
#include <string_view>

#include "io/tokenizer.h"

namespace weft {

class StreamingDetokenizer {
 public:
  // Keeps a reference to the tokenizer.
  explicit StreamingDetokenizer(const Tokenizer& tokenizer, DecodeOptions options = {});

  // The stream continues a text of these tokens, which it does not return: the rules for the begin of a text, such as
  // that its first space is dropped, apply to the earlier text. Call it before the first push().
  void continue_after(std::span<const int> ids);

  // Adds a token and returns all text that was not returned yet, or "" while that text ends inside a character or in a
  // run of byte tokens that can still turn out to be broken. A byte that can no longer become part of a character is
  // U+FFFD. An id above the vocabulary adds nothing, because a model with a padded embedding can produce it. A negative
  // id is an InternalError.
  std::string push(int id);

  // Whether a token gives no text because it is a control token that the options do not show.
  bool is_hidden(int id) const;

  // Returns the remaining text, with an incomplete last character replaced by U+FFFD, and resets the object.
  std::string finish();

 private:
  std::string take_bytes();
  std::string stripped(std::string text);

  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  std::string pending_;       // begins at a character
  bool is_first_ = true;      // no token had text
  bool was_special_ = false;  // the last token is a control token
  size_t strips_left_ = 0;    // see Decoder::strip_count
};

}  // namespace weft
