#pragma once

// Python's str on UTF-8 text: characters are code points. A byte outside any valid UTF-8 sequence is a separate
// character with the code U+DC00 + byte (as in Python's surrogateescape), and is written back unchanged.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft::jinja {

struct Character {
  char32_t code;
  std::size_t bytes;
};

// The character that begins at `position`, which must be inside the text.
Character character_at(std::string_view text, std::size_t position);
void append_character(std::string& text, char32_t code);

bool is_ascii(std::string_view text);
std::size_t character_count(std::string_view text);
// The characters, as views into the text.
std::vector<std::string_view> split_characters(std::string_view text);

// str.isspace of one character; also what `\s` matches.
bool is_space(char32_t code);
bool is_alphabetic(char32_t code);
bool is_decimal(char32_t code);
bool is_digit(char32_t code);
// Letters, numbers and the underscore: what `\w` matches.
bool is_word(char32_t code);
bool is_printable(char32_t code);
// str.isidentifier.
bool is_identifier(std::string_view text);

enum class Side { left, right, both };
std::string_view strip_space(std::string_view text, Side side);
// Strips every character that occurs in `set`.
std::string_view strip_set(std::string_view text, std::string_view set, Side side);

// str.splitlines.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

// repr() of a str.
std::string quote(std::string_view text);

}  // namespace weft::jinja
