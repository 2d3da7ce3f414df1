#pragma once

// Reads the tokens of a PTX module. An unexpected token is a UserError with file, line and the token.

#include <cstdint>
#include <string>

#include "base/error.h"
#include "tests/cuda/ptx/tokens.h"

namespace weft::ptx {

class Cursor {
 public:
  Cursor(const std::vector<Token>& tokens, const std::string& name, std::size_t at = 0)
      : tokens_(tokens), name_(name), at_(at) {}

  const Token& peek() const { return tokens_[at_]; }
  const Token& take() {
    const Token& token = tokens_[at_];
    if (token.kind != TokenKind::end) ++at_;
    return token;
  }
  std::size_t place() const { return at_; }

  bool is(std::string_view text) const { return peek().kind != TokenKind::string && peek().text == text; }
  bool take_if(std::string_view text) {
    const bool found = is(text) && peek().kind != TokenKind::end;
    at_ += found ? 1 : 0;
    return found;
  }
  void expect(std::string_view text) {
    if (!take_if(text)) fail_wanted(text);
  }
  // A word, any.
  std::string_view word(std::string_view what) {
    if (peek().kind != TokenKind::word) fail_wanted(what);
    return take().text;
  }
  // A whole number that is not negative.
  std::uint64_t count(std::string_view what);

  [[noreturn]] void fail_wanted(std::string_view what) const {
    fail_user("[{}:{}] wanted {}, but is {}", name_, peek().line, what,
              peek().kind == TokenKind::end ? std::string_view("the end of the text") : peek().text);
  }
  [[noreturn]] void fail(const std::string& problem) const {
    fail_user("[{}:{}] {}", name_, tokens_[at_ == 0 ? 0 : at_ - 1].line, problem);
  }

 private:
  const std::vector<Token>& tokens_;
  const std::string& name_;
  std::size_t at_;
};

// Numbers as in PTX: 12, 12U, 0x1f, 0f3F800000 (the bits of an f32), 0d3FF0000000000000. `width` is 32 or 64 for the
// last two, else 0. False if the word is no number.
bool parse_number(std::string_view word, std::uint64_t& bits, std::uint8_t& width);

// `.align N .b8 name[bytes]`, or `.TYPE name` of one scalar, after the space. The numbers are below 2^31.
struct Declared {
  std::string_view name;
  std::uint64_t alignment = 1, bytes = 0;
};
Declared take_declared(Cursor& cursor);

}  // namespace weft::ptx
