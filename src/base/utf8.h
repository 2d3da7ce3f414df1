#pragma once

// UTF-8: finds broken text and incomplete characters, and replaces broken parts. Well-formed means Unicode 15, table
// 3-7: no surrogates, no overlong forms, nothing above U+10FFFF.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

enum class Utf8Status {
  complete,   // a whole character
  broken,     // a maximal part that can never become a character, at least one byte
  truncated,  // the text ends inside a character that could still become whole
};

// Whether a byte of UTF-8 is in a character, but not its first byte.
constexpr bool is_utf8_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

struct Utf8Step {
  Utf8Status status = Utf8Status::broken;
  char32_t character = 0;  // only if complete
  size_t length = 0;       // in bytes, 1 to 4
};

// The character, or the maximal broken part, that begins at `offset`, which must be inside the text.
Utf8Step utf8_step(std::string_view text, size_t offset);

// The offset of the first byte that is not part of a complete, well-formed character; nullopt if there is none.
std::optional<size_t> first_invalid_utf8(std::string_view text);

// The number of bytes at the end that begin a character which more bytes could complete: 0 to 3.
size_t incomplete_utf8_suffix(std::string_view text);

// The text with one U+FFFD for each maximal broken part (the WHATWG rule, Python's errors='replace'); an incomplete
// character at the end counts as broken.
std::string replace_invalid_utf8(std::string_view text);

void append_utf8(char32_t character, std::string& text);

}  // namespace weft
