#pragma once

// Properties of characters that tokenizers ask for: those of utf8proc, except where Hugging Face has others
// (io/unicode_differences.h).

#include <string>
#include <string_view>

namespace weft {

// Unicode's White_Space (PropList.txt, Unicode 15).
bool is_white_space(char32_t c);
// Category N.
bool is_numeric(char32_t c);
// \w of UTS 18, annex C, which is the \w of Rust.
bool is_word_character(char32_t c);
// Mn, and in the second case also Mc and Me.
bool is_nonspacing_mark(char32_t c);
bool is_combining_mark(char32_t c);
// Cc, Cf, Cs or Co.
bool is_control(char32_t c);

// Category P of utf8proc.
bool is_punctuation(char32_t c);

void append_lowercase(char32_t c, std::string& text);

// The first byte of the character that ends at `end`, which must not be 0.
size_t previous_character(std::string_view text, size_t end);

}  // namespace weft
