#pragma once

// A place in a text that is being parsed, for the small recursive-descent parsers. All of them take
// (text, std::size_t& position), leave `position` right behind what they read, and throw ParseError.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace weft {

// line 3, column 14: expected ']', found 'x'
class ParseError : public UserError {
 public:
  ParseError(std::string_view text, std::size_t position, const std::string& expected);
  std::size_t position() const { return position_; }  // in bytes

 private:
  std::size_t position_;
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

  // Skips blanks and takes `c` when it stands there; otherwise moves nothing.
  bool accept(char c);
  // As accept, but ParseError when it does not.
  void expect(char c);
  // [A-Za-z_][A-Za-z0-9_]* standing here, "" when there is none. word() also takes it.
  std::string_view peek_word() const;
  std::string_view word();
  // A decimal number, with `-` before it or not; ParseError when there is none or it leaves 64 bits.
  std::int64_t integer();

  [[noreturn]] void fail(const std::string& expected) const { throw ParseError(text_, position_, expected); }

 private:
  std::string_view text_;
  std::size_t& position_;
};

}  // namespace weft
