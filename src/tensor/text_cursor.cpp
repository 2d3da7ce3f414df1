#include "tensor/text_cursor.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace weft {
namespace {

constexpr std::size_t kShownBytes = 24;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string found_text(std::string_view text, std::size_t position) {
  if (position >= text.size()) return "the end of the text";
  if (text[position] == '\n' || text[position] == '\r') return "the end of the line";
  std::size_t end = position;
  while (end < text.size() && (is_letter(text[end]) || is_digit(text[end])) && end - position < kShownBytes) ++end;
  const std::string_view shown = text.substr(position, std::max<std::size_t>(end - position, 1));
  const auto byte = static_cast<unsigned char>(shown[0]);
  if (byte < 0x20 || byte >= 0x7f) return fmt::format("byte 0x{:02x}", byte);
  return fmt::format("'{}'", shown);
}

std::string reason_of(std::string_view text, std::size_t position, const std::string& expected) {
  return fmt::format("expected {}, found {}", expected, found_text(text, std::min(position, text.size())));
}

std::string parse_error_text(std::string_view text, std::size_t position, const std::string& reason) {
  position = std::min(position, text.size());
  const std::string_view before = text.substr(0, position);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_end = before.rfind('\n');
  const std::size_t column = 1 + position - (line_end == std::string_view::npos ? 0 : line_end + 1);
  return fmt::format("line {}, column {}: {}", line, column, reason);
}

}  // namespace

ParseError::ParseError(std::string_view text, std::size_t position, const std::string& expected)
    : UserError(parse_error_text(text, position, reason_of(text, position, expected))),
      position_(position),
      reason_(reason_of(text, position, expected)) {}

void TextCursor::skip_blanks() {
  while (!at_end() && is_blank(text_[position_])) ++position_;
}

bool TextCursor::accept(char c) {
  const std::size_t start = position_;
  skip_blanks();
  if (!at_end() && text_[position_] == c) {
    ++position_;
    return true;
  }
  position_ = start;
  return false;
}

void TextCursor::expect(char c) {
  if (accept(c)) return;
  skip_blanks();
  fail(fmt::format("'{}'", c));
}

std::string_view TextCursor::peek_word() const {
  if (!is_letter(peek())) return {};
  std::size_t end = position_;
  while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
  return text_.substr(position_, end - position_);
}

std::string_view TextCursor::word() {
  const std::string_view found = peek_word();
  position_ += found.size();
  return found;
}

std::int64_t TextCursor::integer() {
  std::int64_t value = 0;
  const char* first = text_.data() + std::min(position_, text_.size());
  const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
  if (error == std::errc::result_out_of_range) fail("a number of 64 bits");
  if (error != std::errc()) fail("a number");
  position_ += static_cast<std::size_t>(end - first);
  return value;
}

}  // namespace weft
