#include "io/jinja/lexer.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "base/error.h"
#include "base/text.h"
#include "io/jinja/string_literal.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

constexpr std::string_view kTwoByteSymbols[] = {"//", "**", "==", "!=", ">=", "<="};
constexpr std::string_view kOneByteSymbols = "+-/*%~[](){}><=.:|,;";

bool is_hexadecimal(char byte) {
  return weft::is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}
bool is_octal(char byte) { return byte >= '0' && byte <= '7'; }
bool is_binary(char byte) { return byte == '0' || byte == '1'; }
bool is_zero(char byte) { return byte == '0'; }

// Converts line ends to \n and removes one at the end of the source.
std::string normalize(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (position_ < source_.size()) lex_text();
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  // The opening of a tag with its sign: "{%-".
  struct Opening {
    std::size_t at;
    char kind;  // '%', '{' or '#'
    char sign;  // '-', '+' or 0
    std::size_t bytes;
  };

  [[noreturn]] void fail(const std::string& what) const { fail_user("[chat template] line {}: {}", line_, what); }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }

  bool at(std::string_view text, std::size_t position) const { return source_.substr(position, text.size()) == text; }
  bool at(std::string_view text) const { return at(text, position_); }

  // Sets the position and counts the lines up to it.
  void advance(std::size_t end) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(position_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    position_ = end;
  }

  std::size_t after_space(std::size_t position) const {
    while (position < source_.size()) {
      const Character character = character_at(source_, position);
      if (!is_space(character.code)) break;
      position += character.bytes;
    }
    return position;
  }

  std::optional<Opening> find_opening() const {
    for (std::size_t at = source_.find('{', position_); at != std::string_view::npos; at = source_.find('{', at + 1)) {
      const char kind = at + 1 < source_.size() ? source_[at + 1] : '\0';
      if (kind != '%' && kind != '{' && kind != '#') continue;
      const char next = at + 2 < source_.size() ? source_[at + 2] : '\0';
      const char sign = next == '-' || next == '+' ? next : '\0';
      return Opening{at, kind, sign, sign != '\0' ? std::size_t{3} : std::size_t{2}};
    }
    return std::nullopt;
  }

  // Returns the text before a tag, without the white space that the sign of the tag or lstrip_blocks removes.
  std::string_view strip_before(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return strip_space(text, Side::right);
    if (sign == '+' || is_variable) return text;
    const std::size_t line_begin = text.rfind('\n') + 1;
    if (line_begin == 0 && !line_starting_) return text;
    return strip_space(text.substr(line_begin), Side::both).empty() ? text.substr(0, line_begin) : text;
  }

  void add_text(std::string_view text) {
    if (!text.empty()) add(TokenKind::text, std::string(text));
  }

  // If `mark` closes a tag at `position`, returns the end of the tag, otherwise nullopt. The end includes the white
  // space after a `-`, and one newline after a block.
  std::optional<std::size_t> closing(std::string_view mark, std::size_t position, bool trims_newline) const {
    if (position >= source_.size()) return std::nullopt;
    const char sign = source_[position];
    const bool has_sign = (sign == '-' || (sign == '+' && trims_newline)) && at(mark, position + 1);
    if (has_sign) {
      const std::size_t end = position + 1 + mark.size();
      return sign == '-' ? after_space(end) : end;
    }
    if (!at(mark, position)) return std::nullopt;
    const std::size_t end = position + mark.size();
    return trims_newline && at("\n", end) ? end + 1 : end;
  }

  void finish_tag(std::size_t end) {
    line_starting_ = source_[end - 1] == '\n';
    advance(end);
  }

  void lex_text() {
    const auto opening = find_opening();
    if (!opening) {
      add_text(source_.substr(position_));
      advance(source_.size());
      return;
    }
    add_text(strip_before(source_.substr(position_, opening->at - position_), opening->sign, opening->kind == '{'));
    line_starting_ = false;
    advance(opening->at);
    if (opening->kind == '#') {
      lex_comment(opening->bytes);
    } else if (opening->kind == '%' && lex_raw(opening->bytes)) {
      return;
    } else {
      const bool is_block = opening->kind == '%';
      add(is_block ? TokenKind::block_begin : TokenKind::variable_begin, "");
      position_ += opening->bytes;
      lex_code(is_block);
    }
  }

  // As in Jinja, a comment or raw block that opens at the very end of the source is accepted.
  void lex_comment(std::size_t opening_bytes) {
    if (position_ + opening_bytes == source_.size()) return advance(source_.size());
    for (std::size_t at = position_ + opening_bytes; at < source_.size(); ++at) {
      if (const auto end = closing("#}", at, true)) {
        finish_tag(*end);
        return;
      }
    }
    fail("the comment has no end");
  }

  // Reads {% raw %} ... {% endraw %}. False if the tag is another one.
  bool lex_raw(std::size_t opening_bytes) {
    const std::size_t word = after_space(position_ + opening_bytes);
    if (!at("raw", word)) return false;
    const std::size_t mark = after_space(word + 3);
    const bool strips = at("-%}", mark);
    if (!strips && !at("%}", mark)) return false;
    const std::size_t begin = strips ? after_space(mark + 3) : mark + 2;
    if (begin == source_.size()) {
      advance(begin);
      return true;
    }
    line_starting_ = source_[begin - 1] == '\n';
    for (std::size_t at = source_.find("{%", begin); at != std::string_view::npos; at = source_.find("{%", at + 1)) {
      const char sign = at + 2 < source_.size() ? source_[at + 2] : '\0';
      const bool has_sign = sign == '-' || sign == '+';
      const std::size_t name = after_space(at + (has_sign ? 3 : 2));
      if (!this->at("endraw", name)) continue;
      const auto end = closing("%}", after_space(name + 6), true);
      if (!end) continue;
      advance(begin);
      add_text(strip_before(source_.substr(begin, at - begin), sign, false));
      finish_tag(*end);
      return true;
    }
    fail("the raw block has no end");
  }

  void lex_code(bool is_block) {
    std::string brackets;  // the closing brackets that the lexer still expects
    while (position_ < source_.size()) {
      if (brackets.empty()) {
        if (const auto end = closing(is_block ? "%}" : "}}", position_, is_block)) {
          add(is_block ? TokenKind::block_end : TokenKind::variable_end, "");
          finish_tag(*end);
          return;
        }
      }
      const std::size_t code = after_space(position_);
      if (code != position_) {
        advance(code);
      } else {
        lex_token(brackets);
      }
    }
  }

  void lex_token(std::string& brackets) {
    const char first = source_[position_];
    if (weft::is_digit(first)) {
      lex_number();
    } else if (first == '"' || first == '\'') {
      lex_string(first);
    } else if (is_word(character_at(source_, position_).code)) {
      std::size_t end = position_;
      while (end < source_.size() && is_word(character_at(source_, end).code)) end += character_at(source_, end).bytes;
      const std::string_view name = source_.substr(position_, end - position_);
      if (!is_identifier(name)) fail(fmt::format("{} is not a name", quote(name)));
      add(TokenKind::name, std::string(name));
      position_ = end;
    } else {
      lex_symbol(brackets);
    }
  }

  void lex_symbol(std::string& brackets) {
    std::string_view symbol = source_.substr(position_, 2);
    if (std::find(std::begin(kTwoByteSymbols), std::end(kTwoByteSymbols), symbol) == std::end(kTwoByteSymbols))
      symbol = source_.substr(position_, 1);
    if (symbol.size() == 1 && kOneByteSymbols.find(symbol[0]) == std::string_view::npos)
      fail(fmt::format("unexpected character {}",
                       quote(source_.substr(position_, character_at(source_, position_).bytes))));
    switch (symbol[0]) {
      case '(':
        brackets += ')';
        break;
      case '[':
        brackets += ']';
        break;
      case '{':
        brackets += '}';
        break;
      case ')':
      case ']':
      case '}':
        if (brackets.empty()) fail(fmt::format("unexpected '{}'", symbol));
        if (brackets.back() != symbol[0]) fail(fmt::format("unexpected '{}', expected '{}'", symbol, brackets.back()));
        brackets.pop_back();
        break;
      default:
        break;
    }
    add(TokenKind::symbol, std::string(symbol));
    position_ += symbol.size();
  }

  // Returns the end of a run of digits with single underscores between them, or `begin` if there is no digit.
  template <class Belongs>
  std::size_t after_digits(std::size_t begin, Belongs&& belongs, bool may_begin_with_underscore = false) const {
    std::size_t position = begin;
    while (position < source_.size()) {
      const bool underscore = source_[position] == '_' && (position > begin || may_begin_with_underscore);
      const std::size_t digit = position + (underscore ? 1 : 0);
      if (digit >= source_.size() || !belongs(source_[digit])) break;
      position = digit + 1;
    }
    return position;
  }

  // Returns the end of a number with a fraction or an exponent, or nullopt if the number has neither.
  std::optional<std::size_t> after_real() const {
    // After a point, the digits are a subscript: `list.0.1` has two of them.
    if (position_ > 0 && source_[position_ - 1] == '.') return std::nullopt;
    const std::size_t whole = after_digits(position_, weft::is_digit);
    std::size_t fraction = whole;
    if (at(".", whole)) {
      const std::size_t end = after_digits(whole + 1, weft::is_digit);
      if (end > whole + 1) fraction = end;
    }
    if (at("e", fraction) || at("E", fraction)) {
      const std::size_t sign = fraction + 1;
      const std::size_t digits = at("+", sign) || at("-", sign) ? sign + 1 : sign;
      const std::size_t end = after_digits(digits, weft::is_digit);
      if (end > digits) return end;
    }
    return fraction > whole ? std::optional(fraction) : std::nullopt;
  }

  std::size_t after_integer() const {
    if (source_[position_] != '0') return after_digits(position_, weft::is_digit);
    const char base = position_ + 1 < source_.size() ? source_[position_ + 1] : '\0';
    std::size_t end = position_ + 2;
    if (base == 'x' || base == 'X') end = after_digits(position_ + 2, is_hexadecimal, true);
    if (base == 'o' || base == 'O') end = after_digits(position_ + 2, is_octal, true);
    if (base == 'b' || base == 'B') end = after_digits(position_ + 2, is_binary, true);
    return end > position_ + 2 ? end : after_digits(position_, is_zero);
  }

  void lex_number() {
    const auto real = after_real();
    const std::size_t end = real ? *real : after_integer();
    std::string digits(source_.substr(position_, end - position_));
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    add(real ? TokenKind::real : TokenKind::integer, std::move(digits));
    position_ = end;
  }

  void lex_string(char mark) {
    std::size_t end = position_ + 1;
    while (end < source_.size() && source_[end] != mark) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("the string has no end");
    std::string text;
    const std::string wrong = unescape(source_.substr(position_ + 1, end - position_ - 1), text);
    if (!wrong.empty()) fail(wrong);
    add(TokenKind::string, std::move(text));
    advance(end + 1);
  }

  std::string_view source_;
  std::size_t position_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  const std::string normalized = normalize(source);
  return Lexer(normalized).run();
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::text:
      return "text";
    case TokenKind::block_begin:
      return "'{%'";
    case TokenKind::block_end:
      return "the end of the tag";
    case TokenKind::variable_begin:
      return "'{{'";
    case TokenKind::variable_end:
      return "the end of the expression";
    case TokenKind::end:
      return "the end of the template";
    case TokenKind::string:
      return "the string " + quote(token.text);
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace weft::jinja
