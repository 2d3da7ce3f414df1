#pragma once

// A position in a text that is being parsed, for the small recursive-descent parsers. All of them take (text,
// std::size_t& position), leave `position` directly after what they read, and throw ParseError.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace weft {

// line 3, column 14: expected ']', found 'x'
class ParseError : public UserError {
 public:
  ParseError(std::string_view text, std::size_t position, const std::string& expected);
  std::size_t position() const { return position_; }     // in bytes
  const std::string& reason() const { return reason_; }  // expected ']', found 'x'

 private:
  std::size_t position_;
  std::string reason_;
};

class TextCursor {
 public:
  TextCursor(std::string_view text, std::size_t& position) : text_(text), position_(position) {}

  std::size_t position() const { return position_; }
  void move_to(std::size_t position) { position_ = position; }
  bool at_end() const { return position_ >= text_.size(); }
  // The byte here, or '\0' at the end.
  char peek() const { return at_end() ? '\0' : text_[position_]; }
  char take() { return at_end() ? '\0' : text_[position_++]; }
  std::string_view rest() const { return text_.substr(position_ < text_.size() ? position_ : text_.size()); }
  void skip_blanks();  // spaces, tabs and line ends

  // Skips blanks and consumes `c` if it is next. Otherwise the position does not change.
  bool accept(char c);
  // As accept, but throws ParseError if `c` is not next.
  void expect(char c);
  // The word [A-Za-z_][A-Za-z0-9_]* at the position, or "". word() also consumes it.
  std::string_view peek_word() const;
  std::string_view word();
  // A decimal number, optionally with `-`. Throws ParseError if there is none or it overflows 64 bits.
  std::int64_t integer();

  [[noreturn]] void fail(const std::string& expected) const { throw ParseError(text_, position_, expected); }

 private:
  std::string_view text_;
  std::size_t& position_;
};

}  // namespace weft
