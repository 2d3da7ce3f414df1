#pragma once

// Splits a template into text and tokens, with Jinja's whitespace rules: trim_blocks, lstrip_blocks, the signs - and +
// at a tag, and the removal of one newline at the end of the source.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::jinja {

enum class TokenKind : std::uint8_t {
  text,            // literal output
  block_begin,     // {%
  block_end,       // %}
  variable_begin,  // {{
  variable_end,    // }}
  name,
  string,
  integer,
  real,
  symbol,  // an operator or a bracket
  end,     // of the template
};

struct Token {
  TokenKind kind = TokenKind::end;
  int line = 1;
  // The text, name or symbol; the unescaped value of a string; the digits of a number without underscores.
  std::string text;
};

// The last token is `end`. Throws UserError that names the line.
std::vector<Token> tokenize(std::string_view source);

// The token as text for messages.
std::string describe(const Token& token);

}  // namespace weft::jinja
