#include "tests/cuda/ptx/tokens.h"

#include <algorithm>

#include "base/error.h"

namespace weft::ptx {
namespace {

bool is_of_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '%' || c == '.';
}

class Scanner {
 public:
  Scanner(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  std::vector<Token> run() {
    while (skip_space()) tokens_.push_back(next());
    tokens_.push_back({TokenKind::end, text_.substr(text_.size()), line_});
    return std::move(tokens_);
  }

 private:
  bool starts(std::string_view with) const { return text_.substr(at_, with.size()) == with; }

  // To the next token; whether there is one.
  bool skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        ++at_;
      } else if (starts("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (starts("/*")) {
        skip_long_comment();
      } else {
        return true;
      }
    }
    return false;
  }

  void skip_long_comment() {
    const std::size_t end = text_.find("*/", at_ + 2);
    USER_CHECK(end != std::string_view::npos, "[{}:{}] a comment has no end", name_, line_);
    for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
  }

  Token next() {
    const std::size_t begin = at_;
    const char c = text_[at_];
    if (is_of_word(c)) {
      while (at_ < text_.size() && (is_of_word(text_[at_]) || starts("::"))) at_ += starts("::") ? 2 : 1;
      return {TokenKind::word, text_.substr(begin, at_ - begin), line_};
    }
    if (c == '"') {
      at_ = text_.find_first_of("\"\n", at_ + 1);
      USER_CHECK(at_ != std::string_view::npos && text_[at_] == '"', "[{}:{}] a string has no end", name_, line_);
      return {TokenKind::string, text_.substr(begin + 1, at_++ - begin - 1), line_};
    }
    USER_CHECK(std::string_view("{}[]()<>,;:@!|+-=").find(c) != std::string_view::npos,
               "[{}:{}] PTX has no character {}", name_, line_, static_cast<int>(static_cast<unsigned char>(c)));
    ++at_;
    return {TokenKind::sign, text_.substr(begin, 1), line_};
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text, const std::string& name) { return Scanner(text, name).run(); }

}  // namespace weft::ptx
