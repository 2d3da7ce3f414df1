#include "ir/graph_cursor.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

void GraphCursor::skip(bool newlines) {
  while (!at_end()) {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\r' || (newlines && c == '\n')) {
      ++position_;
    } else if (c == '#' && (newlines || peek(1) != '@')) {
      while (!at_end() && peek() != '\n') ++position_;
    } else {
      return;
    }
  }
}

bool GraphCursor::take(std::string_view expected, bool newlines) {
  skip(newlines);
  if (text_.substr(position_, expected.size()) != expected) return false;
  position_ += expected.size();
  return true;
}

void GraphCursor::expect(std::string_view expected, bool newlines) {
  if (!take(expected, newlines)) fail_expected("'" + std::string(expected) + "'");
}

std::string GraphCursor::peek_word() const {
  std::size_t end = position_;
  if (end < text_.size() && is_letter(text_[end]))
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
  return std::string(text_.substr(position_, end - position_));
}

bool GraphCursor::take_word(std::string_view expected, bool newlines) {
  skip(newlines);
  if (peek_word() != expected) return false;
  position_ += expected.size();
  return true;
}

std::string GraphCursor::word(std::string_view what, bool newlines) {
  skip(newlines);
  std::string found = peek_word();
  if (found.empty()) fail_expected(what);
  position_ += found.size();
  return found;
}

std::string GraphCursor::take_origin() {
  skip(false);
  if (peek() != '#' || peek(1) != '@') return "";
  const std::size_t begin = position_ + 2;
  while (!at_end() && peek() != '\n') ++position_;
  return std::string(text_.substr(begin, position_ - begin));
}

int GraphCursor::line() const {
  if (position_ < counted_) {
    counted_ = 0;
    line_ = 1;
  }
  for (const std::size_t end = std::min(position_, text_.size()); counted_ < end; ++counted_)
    if (text_[counted_] == '\n') ++line_;
  return line_;
}

std::string GraphCursor::where() const {
  const std::size_t at = std::min(position_, text_.size());
  const std::size_t line_start = at == 0 ? 0 : text_.rfind('\n', at - 1) + 1;
  return fmt::format("{}:{}:{}", source_, line(), at - line_start + 1);
}

void GraphCursor::fail_expected(std::string_view expected) const {
  std::string found = "the end of the text";
  if (!at_end()) {
    std::string word = peek_word();
    found =
        word.empty() ? (peek() == '\n' ? "the end of the line" : "'" + std::string(1, peek()) + "'") : "'" + word + "'";
  }
  fail_user("{}: expected {}, but found {}", where(), expected, found);
}

void GraphCursor::fail(const std::string& message) const { fail_user("{}: {}", where(), message); }

void GraphCursor::fail_at(std::size_t position, const std::string& message) const {
  GraphCursor other = *this;
  other.position_ = position;
  other.fail(message);
}

}  // namespace weft
