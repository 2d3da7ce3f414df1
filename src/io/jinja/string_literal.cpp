#include "io/jinja/string_literal.h"

#include <fmt/core.h>

#include "base/hexadecimal.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

// Returns the character of an escape with one letter, or 0 if the letter has none.
char simple_escape(char letter) {
  switch (letter) {
    case '\\':
    case '\'':
    case '"':
      return letter;
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return 0;
  }
}

std::size_t digits_after(char letter) {
  if (letter == 'x') return 2;
  if (letter == 'u') return 4;
  return letter == 'U' ? 8 : 0;
}

// Reads the digits of \x, \u or \U. Returns the error, or an empty string.
std::string append_coded(std::string_view digits, std::size_t count, std::string& text) {
  char32_t code = 0;
  if (digits.size() < count) return "a string escape with too few digits";
  for (const char byte : digits.substr(0, count)) {
    const int value = hexadecimal_value(byte);
    if (value < 0) return "a string escape with too few digits";
    code = code * 16 + static_cast<char32_t>(value);
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
    return fmt::format("the string escape U+{:04X} is not a character", static_cast<unsigned>(code));
  append_character(text, code);
  return "";
}

}  // namespace

std::string unescape(std::string_view quoted, std::string& text) {
  for (std::size_t i = 0; i < quoted.size();) {
    if (quoted[i] != '\\' || i + 1 == quoted.size()) {
      text += quoted[i++];
      continue;
    }
    const char letter = quoted[i + 1];
    i += 2;
    if (letter == '\n') continue;
    if (const char simple = simple_escape(letter)) {
      text += simple;
    } else if (const std::size_t count = digits_after(letter)) {
      const std::string wrong = append_coded(quoted.substr(i), count, text);
      if (!wrong.empty()) return wrong;
      i += count;
    } else if (letter >= '0' && letter <= '7') {
      char32_t code = static_cast<char32_t>(letter - '0');
      for (int digits = 1; digits < 3 && i < quoted.size() && quoted[i] >= '0' && quoted[i] <= '7'; ++digits)
        code = code * 8 + static_cast<char32_t>(quoted[i++] - '0');
      append_character(text, code);
    } else if (letter == 'N') {
      return "the string escape \\N (a character by its name) is not supported";
    } else {
      text += '\\';
      text += letter;
    }
  }
  return "";
}

}  // namespace weft::jinja
