#pragma once

// The characters of a pattern or of a grammar text, one after the other.

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/hexadecimal.h"
#include "base/text.h"
#include "base/utf8.h"
#include "grammar/characters.h"

namespace weft::grammar {

// Groups within groups: readers recurse.
inline constexpr int kDeepestGroup = 200;

class TextReader {
 public:
  // `what` begins messages: "[regex] ...". UserError unless the text is UTF-8, and has no NUL unless it may.
  TextReader(std::string_view text, std::string what, bool may_have_nul = false)
      : text_(text), what_(std::move(what)), may_have_nul_(may_have_nul) {
    if (first_invalid_utf8(text)) fail("must be UTF-8");
    if (!may_have_nul && text.find('\0') != std::string_view::npos) fail("must not have the character NUL");
  }

  bool at_end() const { return offset_ == text_.size(); }
  std::size_t offset() const { return offset_; }
  void set_offset(std::size_t offset) { offset_ = offset; }
  bool sees(std::string_view text) const { return text_.substr(offset_, text.size()) == text; }
  // Passes the text if it is next.
  bool take(std::string_view text) {
    if (!sees(text)) return false;
    offset_ += text.size();
    return true;
  }
  // '\0' at the end.
  char peek() const { return at_end() ? '\0' : text_[offset_]; }
  char32_t next() {
    if (at_end()) fail("ends too early");
    const Utf8Step step = utf8_step(text_, offset_);
    offset_ += step.length;
    return step.character;
  }

  // A number of exactly `count` hexadecimal digits, or of one to six up to a closing brace.
  char32_t hexadecimal(int count) {
    char32_t value = 0;
    for (int i = 0; i < count; ++i) value = value * 16 + hexadecimal_digit();
    return checked(value);
  }
  char32_t hexadecimal_in_braces() {
    char32_t value = 0;
    for (int i = 0; i < 6 && (i == 0 || peek() != '}'); ++i) value = value * 16 + hexadecimal_digit();
    if (!take("}")) fail("wanted } after a hexadecimal number");
    return checked(value);
  }
  // The character itself; fails for a surrogate.
  char32_t scalar(char32_t character) const {
    if (character >= kFirstSurrogate && character <= kLastSurrogate) fail("has half a surrogate pair");
    return character;
  }
  // Digits as a number of at most `most`; nullopt if there is no digit.
  std::optional<int> decimal(int most) {
    if (!is_digit(peek())) return std::nullopt;
    int value = 0;
    while (is_digit(peek())) {
      value = value * 10 + (text_[offset_++] - '0');
      if (value > most) fail(fmt::format("a repetition must be of at most {}", most));
    }
    return value;
  }

  [[noreturn]] void fail(std::string_view sentence) const {
    fail_user("[{}] {} (at byte {} of {})", what_, sentence, offset_, quote(text_));
  }

 private:
  char32_t hexadecimal_digit() {
    const int value = hexadecimal_value(peek());
    if (value < 0) fail("wanted a hexadecimal digit");
    ++offset_;
    return static_cast<char32_t>(value);
  }
  char32_t checked(char32_t value) const {
    if (value == 0 && !may_have_nul_) fail("must not have the character NUL");
    if (value > kLastCharacter) fail("has a character beyond U+10FFFF");
    return value;
  }

  std::string_view text_;
  std::string what_;
  bool may_have_nul_;
  std::size_t offset_ = 0;
};

}  // namespace weft::grammar
