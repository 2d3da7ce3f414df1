#pragma once

// PTX text as words, strings and signs, each with its position, without comments and white space.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::ptx {

enum class TokenKind : std::uint8_t {
  word,    // letters, digits and any of _ $ % . and double colons: opcodes, names, numbers without their minus
  string,  // in double quotes, without them
  sign,    // one character of { } [ ] ( ) < > , ; : @ ! | + - =
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  // of the text that was given
  int line = 0;           // from 1
};

// The last token has kind `end`. Throws UserError with `name` and the line for anything else.
std::vector<Token> tokens_of(std::string_view text, const std::string& name);

}  // namespace weft::ptx
