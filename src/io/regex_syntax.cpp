#include "io/regex_syntax.h"

#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/character_set.h"

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

  // An escape outside a character class.
  void translate_escape() {
    CharacterSet set;
    if (read_set(set)) {
      result_ += set.text();
      return;
    }
    switch (letter()) {
      case 'b':
        return replace(2, word_boundary());
      case 'B':
        return replace(2, no_word_boundary());
      case 'A':
      case 'z':
      case 'Z':
        return copy(2);
      default:
        result_ += read_character();
    }
  }

  // The byte after the backslash.
  char letter() const {
    if (offset_ + 1 >= pattern_.size()) refuse("\\ at the end");
    return pattern_[offset_ + 1];
  }

  // Reads an escape that means a set of characters. False and no change for any other escape.
  bool read_set(CharacterSet& set) {
    switch (letter()) {
      case 's':
        set.add_property("White_Space", false);
        break;
      case 'S':
        set.add_property("White_Space", true);
        break;
      case 'd':
      case 'D':
        set.add_property("Nd", letter() == 'D');
        break;
      case 'w':
      case 'W':
        set.add_words(letter() == 'W', in_class_);
        break;
      case 'p':
      case 'P':
        read_property(set);
        return true;
      default:
        return false;
    }
    offset_ += 2;
    return true;
  }

  // Reads an escape that means one character. Its translation is valid inside and outside a character class.
  std::string read_character() {
    const char name = letter();
    if (!std::isalnum(static_cast<unsigned char>(name))) return take(2);
    switch (name) {
      case 'v':
        offset_ += 2;
        return "\\x{0b}";
      case 'b':
        if (!in_class_) break;
        offset_ += 2;
        return "\\x{08}";
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
        return take(2);
      case 'x':
        return read_hexadecimal();
      case 'u':
        return read_digits(4);
      default:
        break;
    }
    refuse(pattern_.substr(offset_, 2));
  }

  std::string take(size_t length) {
    const std::string_view text = pattern_.substr(offset_, length);
    offset_ += length;
    return std::string(text);
  }

  // Accepts \p{Name} and \p{^Name}. Only PCRE2 has the one-letter form \pL, so it is an error.
  void read_property(CharacterSet& set) {
    const size_t close = pattern_.find('}', offset_);
    if (offset_ + 2 >= pattern_.size() || pattern_[offset_ + 2] != '{' || close == std::string_view::npos) {
      refuse(pattern_.substr(offset_, 3));
    }
    std::string_view name = pattern_.substr(offset_ + 3, close - offset_ - 3);
    bool is_negated = letter() == 'P';
    if (name.starts_with('^')) {
      is_negated = !is_negated;
      name.remove_prefix(1);
    }
    set.add_property(name, is_negated);
    offset_ = close + 1;
  }

  // \xHH or \x{H...}.
  std::string read_hexadecimal() {
    if (offset_ + 2 < pattern_.size() && pattern_[offset_ + 2] == '{') {
      const size_t close = pattern_.find('}', offset_);
      if (close == std::string_view::npos) refuse(pattern_.substr(offset_, 3));
      return take(close + 1 - offset_);
    }
    return read_digits(2);
  }

  // \xHH or \uHHHH.
  std::string read_digits(size_t count) {
    const std::string digits(pattern_.substr(offset_ + 2, count));
    bool all_digits = digits.size() == count;
    for (const char digit : digits) all_digits = all_digits && std::isxdigit(static_cast<unsigned char>(digit));
    if (!all_digits) refuse(pattern_.substr(offset_, 2 + count));
    offset_ += 2 + count;
    return "\\x{" + digits + "}";
  }

  // What the current item of a class follows. It decides whether a hyphen makes a range.
  enum class After { begin, character, hyphen, range, set, nested };

  void translate_class() {
    in_class_ = true;
    const bool is_negated = next_is("[^");
    offset_ += is_negated ? 2 : 1;
    result_ += read_class(is_negated);
    in_class_ = false;
  }

  // The pattern of a class after its bracket. The sets between && are intersected: a character of the last set must
  // also be one of the sets before it.
  std::string read_class(bool is_negated) {
    std::string others;
    CharacterSet set = read_items(true);
    if (!next_is("&&")) {
      ++offset_;
      return set.text(is_negated);
    }
    while (next_is("&&")) {
      others += "(?=" + set.text() + ")";
      offset_ += 2;
      set = read_items(true);
    }
    ++offset_;
    const std::string all = others + set.text();
    return is_negated ? "(?:(?!" + all + ")\\p{Any})" : "(?:" + all + ")";
  }

  // Reads up to the closing bracket, or up to && if the class may have one.
  CharacterSet read_items(bool may_intersect) {
    CharacterSet set;
    After after = After::begin;
    if (next_is("]")) add_character(take(1), set, after);
    while (true) {
      if (offset_ >= pattern_.size()) refuse("[ without ]");
      const char c = pattern_[offset_];
      if (c == ']') return set;
      if (c == '[') {
        add_nested_class(set, after);
      } else if (next_is("&&")) {
        if (!may_intersect || after == After::begin)
          refuse("&& in a nested character class, or without a set before it");
        return set;
      } else if (c == '-') {
        read_hyphen(set, after);
      } else if (c != '\\') {
        add_character(take(utf8_step(pattern_, offset_).length), set, after);
      } else if (!read_set(set)) {
        add_character(read_character(), set, after);
      } else {
        if (after == After::hyphen) refuse("a range to a set in a character class");
        after = After::set;
      }
    }
  }

  // A nested class is a union with the outer one.
  void add_nested_class(CharacterSet& set, After& after) {
    for (const std::string_view begin : {"[:", "[]", "[^]"})
      if (next_is(begin)) refuse(std::string(begin) + " in a character class");
    if (after == After::hyphen) refuse("-[ in a character class");
    after = After::nested;
    const bool is_negated = next_is("[^");
    offset_ += is_negated ? 2 : 1;
    const CharacterSet nested = read_items(false);
    ++offset_;
    if (!is_negated) return set.add_set(nested);
    if (!set.add_complement(nested)) refuse("a negated set in a negated nested character class");
  }

  static void add_character(const std::string& text, CharacterSet& set, After& after) {
    // These have other meanings at the begin of a class of PCRE2: "[.a.]" is a collating element there.
    const bool is_escaped = text.size() == 1 && std::string_view("^].:=").find(text) != std::string_view::npos;
    set.add_text(is_escaped ? "\\" + text : text);
    after = after == After::hyphen ? After::range : After::character;
  }

  // A hyphen makes a range only after a character that is in no range.
  void read_hyphen(CharacterSet& set, After& after) {
    ++offset_;
    const bool is_last = next_is("]");
    if (after == After::set && !is_last) refuse("- after a set in a character class");
    if (after == After::character && !is_last) {
      set.add_text("-");
      after = After::hyphen;
    } else {
      add_character("\\-", set, after);
    }
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
