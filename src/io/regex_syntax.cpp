#include "io/regex_syntax.h"

#include <array>
#include <cctype>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"

namespace weft {
namespace {

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    while (offset_ < pattern_.size()) {
      switch (pattern_[offset_]) {
        case '\\':
          translate_escape();
          break;
        case '[':
          translate_class();
          break;
        case '(':
          translate_group();
          break;
        case '{':
          translate_braces();
          break;
        default:
          copy(1);
      }
    }
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(std::string_view construct) const {
    fail_user("[regex] construct {} in pattern {} is not supported", quote(construct), quote(pattern_));
  }

  bool next_is(std::string_view text) const { return pattern_.substr(offset_, text.size()) == text; }

  void copy(size_t length) {
    result_ += pattern_.substr(offset_, length);
    offset_ += length;
  }

  void replace(size_t length, std::string_view text) {
    result_ += text;
    offset_ += length;
  }

  // Works inside and outside a character class, because every replacement is itself a valid class item.
  void translate_escape() {
    if (offset_ + 1 >= pattern_.size()) refuse("\\ at the end");
    const char letter = pattern_[offset_ + 1];
    if (!std::isalnum(static_cast<unsigned char>(letter))) return copy(2);
    switch (letter) {
      case 's':
        return replace(2, "\\p{White_Space}");
      case 'S':
        return replace(2, "\\P{White_Space}");
      case 'v':
        return replace(2, "\\x{0b}");
      case 'd':
      case 'D':
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
        return copy(2);
      case 'p':
      case 'P':
        return translate_property();
      case 'x':
        return translate_hexadecimal();
      case 'u':
        return translate_code_unit();
      case 'A':
      case 'z':
      case 'Z':
        if (in_class_) break;
        return copy(2);
      default:
        break;
    }
    refuse(pattern_.substr(offset_, 2));
  }

  // Accepts \p{Name} and \p{^Name}. Only PCRE2 has the one-letter form \pL, so it is an error.
  void translate_property() {
    const size_t close = pattern_.find('}', offset_);
    if (offset_ + 2 >= pattern_.size() || pattern_[offset_ + 2] != '{' || close == std::string_view::npos) {
      refuse(pattern_.substr(offset_, 3));
    }
    copy(close + 1 - offset_);
  }

  // \xHH or \x{H...}.
  void translate_hexadecimal() {
    if (offset_ + 2 < pattern_.size() && pattern_[offset_ + 2] == '{') {
      const size_t close = pattern_.find('}', offset_);
      if (close == std::string_view::npos) refuse(pattern_.substr(offset_, 3));
      return copy(close + 1 - offset_);
    }
    copy_digits(2);
  }

  // \uHHHH.
  void translate_code_unit() { copy_digits(4); }

  void copy_digits(size_t count) {
    const std::string_view digits = pattern_.substr(offset_ + 2, count);
    bool all_digits = digits.size() == count;
    for (const char digit : digits) all_digits = all_digits && std::isxdigit(static_cast<unsigned char>(digit));
    if (!all_digits) refuse(pattern_.substr(offset_, 2 + count));
    replace(2 + count, "\\x{" + std::string(digits) + "}");
  }

  void translate_class() {
    in_class_ = true;
    copy(next_is("[^") ? 2 : 1);
    if (next_is("]")) copy(1);
    while (offset_ < pattern_.size() && pattern_[offset_] != ']') {
      if (pattern_[offset_] == '\\') {
        translate_escape();
      } else if (pattern_[offset_] == '[') {
        refuse(next_is("[:") ? "[: in a character class" : "[ in a character class");
      } else if (next_is("&&")) {
        refuse("&& in a character class");
      } else {
        copy(1);
      }
    }
    if (offset_ >= pattern_.size()) refuse("[ without ]");
    copy(1);
    in_class_ = false;
  }

  void translate_group() {
    if (next_is("(*")) refuse("(*");
    if (!next_is("(?")) return copy(1);
    static constexpr std::array<std::string_view, 10> kGroups = {
        "(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:", "(?i)", "(?-i:", "(?-i)"};
    for (const std::string_view group : kGroups) {
      if (next_is(group)) return copy(group.size());
    }
    refuse(pattern_.substr(offset_, 3));
  }

  // {n}, {n,} and {n,m} mean the same in both syntaxes. Here {,n} means {0,n}, {n,m}+ would become possessive in PCRE2
  // and is an error, and all other braces are literal text.
  void translate_braces() {
    const size_t close = pattern_.find('}', offset_);
    const std::string_view inside =
        close == std::string_view::npos ? std::string_view() : pattern_.substr(offset_ + 1, close - offset_ - 1);
    const bool is_repeat = !inside.empty() && inside != "," && inside.find_first_not_of("0123456789,") == inside.npos &&
                           inside.find(',') == inside.rfind(',');
    if (!is_repeat) return replace(1, "\\{");
    if (close + 1 < pattern_.size() && pattern_[close + 1] == '+') {
      refuse(pattern_.substr(offset_, close + 2 - offset_));
    }
    if (inside.front() == ',') return replace(close + 1 - offset_, "{0" + std::string(inside) + "}");
    copy(close + 1 - offset_);
  }

  std::string_view pattern_;
  std::string result_;
  size_t offset_ = 0;
  bool in_class_ = false;
};

}  // namespace

std::string translate_oniguruma(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace weft
