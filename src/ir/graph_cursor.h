#pragma once

// A position in text that is being parsed. It skips blanks and comments, and its errors contain the line and column.

#include <string>
#include <string_view>

namespace weft {

class GraphCursor {
 public:
  GraphCursor(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  // Skips blanks and comments, and newlines too when `newlines`. A comment that begins with `#@` is kept for
  // take_origin.
  void skip(bool newlines);
  bool at_end() const { return position_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0'; }
  // Skips blanks, and takes `expected` if it is next.
  bool take(std::string_view expected, bool newlines = false);
  void expect(std::string_view expected, bool newlines = false);
  // Takes a whole word [A-Za-z0-9_.]* if it equals `word`.
  bool take_word(std::string_view word, bool newlines = false);
  // The next word [A-Za-z_][A-Za-z0-9_]*; fails with `what` in the message when there is none.
  std::string word(std::string_view what, bool newlines = false);
  std::string peek_word() const;
  // The rest of a `#@ ...` comment at this position, "" when there is none.
  std::string take_origin();

  std::string_view text() const { return text_; }
  std::size_t& position() { return position_; }
  int line() const;

  // UserError: "FILE:3:14: expected X, but found 'y'".
  [[noreturn]] void fail_expected(std::string_view expected) const;
  // UserError: "FILE:3:14: message".
  [[noreturn]] void fail(const std::string& message) const;
  // The same with another position of the text.
  [[noreturn]] void fail_at(std::size_t position, const std::string& message) const;

 private:
  std::string where() const;

  std::string_view text_;
  std::string_view source_;
  std::size_t position_ = 0;
  mutable std::size_t counted_ = 0;  // lines are counted up to here
  mutable int line_ = 1;
};

}  // namespace weft
