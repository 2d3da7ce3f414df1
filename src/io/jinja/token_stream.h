#pragma once

// The tokens of a template that the parser reads, with a limit on the nesting depth.

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "io/jinja/lexer.h"
#include "io/jinja/value.h"

namespace weft::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[position_]; }
  // The token after the current one, or the last token.
  const Token& ahead() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  Token next() { return tokens_[position_ + 1 < tokens_.size() ? position_++ : position_]; }
  int line() const { return current().line; }

  bool at(TokenKind kind) const { return current().kind == kind; }
  bool at_symbol(std::string_view symbol) const { return at(TokenKind::symbol) && current().text == symbol; }
  bool at_name(std::string_view name) const { return at(TokenKind::name) && current().text == name; }

  bool skip_symbol(std::string_view symbol) { return at_symbol(symbol) && (next(), true); }
  bool skip_name(std::string_view name) { return at_name(name) && (next(), true); }

  void expect_symbol(std::string_view symbol) {
    if (!skip_symbol(symbol)) fail("expected '{}' but found {}", symbol, describe(current()));
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) fail("expected '{}' but found {}", name, describe(current()));
  }
  void expect(TokenKind kind) {
    if (!at(kind)) fail("unexpected {}", describe(current()));
    next();
  }
  std::string expect_any_name() {
    if (!at(TokenKind::name)) fail("expected a name but found {}", describe(current()));
    return next().text;
  }

  // Throws UserError that names the current line.
  template <class... Arguments>
  [[noreturn]] void fail(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    fail_at(line(), fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  [[noreturn]] static void fail_at(int line, std::string_view what) {
    fail_user("[chat template] line {}: {}", line, what);
  }

  // Counts one level of nesting during its lifetime.
  class Level {
   public:
    explicit Level(TokenStream& stream) : stream_(stream) {
      if (++stream_.depth_ > kMaxNesting) stream_.fail("nested more than {} deep", kMaxNesting);
    }
    ~Level() { --stream_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TokenStream& stream_;
  };

 private:
  std::vector<Token> tokens_;
  std::size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace weft::jinja
