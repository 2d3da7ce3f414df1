#include "grammar/regex.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "grammar/text_reader.h"

namespace weft::grammar {
namespace {

constexpr int kMostRepetitions = 1000;
constexpr std::size_t kMostBranches = 256;

const Characters kDigits = {{'0', '9'}};
const Characters kWords = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Characters kSpaces = {{'\t', '\r'}, {' ', ' '}};

// One way through a pattern, and where its anchors hold it.
struct Branch {
  std::vector<Expression> parts = {};
  bool is_at_begin = false, is_at_end = false;
};

bool has_anchor(const std::vector<Branch>& branches) {
  for (const Branch& branch : branches)
    if (branch.is_at_begin || branch.is_at_end) return true;
  return false;
}

Expression without_anchors(const std::vector<Branch>& branches) {
  std::vector<Expression> ways;
  for (const Branch& branch : branches) ways.push_back(sequence_of(branch.parts));
  return ways.size() == 1 ? ways[0] : choice_of(std::move(ways));
}

class RegexReader {
 public:
  explicit RegexReader(std::string_view pattern) : reader_(pattern, "regex", true) {}

  std::vector<Branch> read() {
    std::vector<Branch> branches = read_alternation();
    if (!reader_.at_end()) reader_.fail("has ) without (");
    return branches;
  }

 private:
  std::vector<Branch> read_alternation() {
    if (++depth_ > kDeepestGroup) reader_.fail(fmt::format("has more than {} groups in each other", kDeepestGroup));
    std::vector<Branch> all;
    bool is_anchored = false;
    do {
      std::vector<Branch> branches = {Branch{}};
      while (!reader_.at_end() && reader_.peek() != '|' && reader_.peek() != ')') read_item(branches);
      is_anchored |= has_anchor(branches);
      for (Branch& branch : branches) all.push_back(std::move(branch));
      check_count(all.size(), is_anchored);
    } while (reader_.take("|"));
    --depth_;
    return all;
  }

  // Without anchors there is one branch for each alternative.
  void check_count(std::size_t branches, bool is_anchored) const {
    if (branches > kMostBranches && is_anchored) reader_.fail("has too many anchors in alternatives");
  }

  void read_item(std::vector<Branch>& branches) {
    if (reader_.take("^") || reader_.take("\\A")) return append(branches, {{.is_at_begin = true}});
    if (reader_.take("$") || reader_.take("\\z") || reader_.take("\\Z")) return append(branches, {{.is_at_end = true}});
    if (reader_.peek() != '(') return append(branches, {{.parts = {read_repeats(read_atom())}}});
    reader_.next();
    read_group_kind();
    std::vector<Branch> group = read_alternation();
    if (!reader_.take(")")) reader_.fail("has ( without )");
    if (!has_anchor(group)) return append(branches, {{.parts = {read_repeats(without_anchors(group))}}});
    const char next = reader_.peek();
    if (next == '*' || next == '+' || next == '?' || is_repeat()) reader_.fail("repeats a group with ^ or $");
    append(branches, group);
  }

  // Each branch goes on with each way of the item.
  void append(std::vector<Branch>& branches, const std::vector<Branch>& ways) {
    if (ways.size() == 1) {
      // In place: copies would make a pattern of many items quadratic.
      for (Branch& branch : branches) append(branch, ways[0]);
      return;
    }
    std::vector<Branch> all;
    for (const Branch& branch : branches)
      for (const Branch& way : ways) append(all.emplace_back(branch), way);
    check_count(all.size(), has_anchor(all));
    branches = std::move(all);
  }

  void append(Branch& branch, const Branch& way) {
    if (way.is_at_begin && !branch.parts.empty()) reader_.fail("has ^ where the text cannot begin");
    if (branch.is_at_end && !way.parts.empty()) reader_.fail("has $ where the text cannot end");
    branch.is_at_begin |= way.is_at_begin;
    branch.is_at_end |= way.is_at_end;
    branch.parts.insert(branch.parts.end(), way.parts.begin(), way.parts.end());
  }

  void read_group_kind() {
    if (!reader_.take("?")) return;
    if (reader_.take(":")) return;
    if (reader_.sees("=") || reader_.sees("!") || reader_.sees("<=") || reader_.sees("<!"))
      reader_.fail("has a look-around, which is not supported");
    if (reader_.take("P<") || reader_.take("<")) {
      while (reader_.peek() != '>') reader_.next();
      reader_.next();
      return;
    }
    reader_.fail("has a group (?.. of a kind that is not supported");
  }

  Expression read_repeats(Expression part) {
    int least = 0, most = kUnbounded;
    if (reader_.take("*")) {
    } else if (reader_.take("+")) {
      least = 1;
    } else if (reader_.take("?")) {
      most = 1;
    } else if (is_repeat()) {
      reader_.next();
      least = reader_.decimal(kMostRepetitions).value_or(0);
      most = least;
      if (reader_.take(",")) most = reader_.decimal(kMostRepetitions).value_or(kUnbounded);
      reader_.next();
      if (most != kUnbounded && most < least) reader_.fail("has a repetition whose bounds are reversed");
    } else {
      return part;
    }
    reader_.take("?");  // lazy
    const char next = reader_.peek();
    if (next == '*' || next == '+' || next == '?' || is_repeat()) reader_.fail("repeats a repetition");
    return repeat_of(std::move(part), least, most);
  }

  // Whether {m}, {m,}, {m,n} or {,n} is next; any other brace is a character.
  bool is_repeat() {
    const std::size_t offset = reader_.offset();
    bool is = reader_.take("{");
    const bool has_least = is && pass_digits();
    const bool has_comma = is && reader_.take(",");
    const bool has_most = has_comma && pass_digits();
    is = is && (has_least || has_most) && reader_.take("}");
    reader_.set_offset(offset);
    return is;
  }
  bool pass_digits() {
    const std::size_t offset = reader_.offset();
    while (is_digit(reader_.peek())) reader_.next();
    return reader_.offset() > offset;
  }

  Expression read_atom() {
    if (reader_.sees("*") || reader_.sees("+") || reader_.sees("?")) reader_.fail("repeats nothing");
    if (reader_.take(".")) return one_of(complement({{'\n', '\n'}}));
    if (reader_.take("[")) return one_character_of(read_class());
    if (reader_.sees("\\")) return one_character_of(read_escape(false));
    const char32_t character = reader_.next();
    return one_character_of({{character, character}});
  }

  // A class may name NUL, as one of what is not allowed.
  Expression one_character_of(Characters set) const {
    if (set == Characters{{0, 0}}) reader_.fail("must not ask for the character NUL");
    return one_of(std::move(set));
  }

  Characters read_class() {
    const bool is_complement = reader_.take("^");
    std::vector<CharacterRange> ranges;
    for (bool is_first = true; is_first || reader_.peek() != ']'; is_first = false) {
      if (reader_.sees("[:")) reader_.fail("has a class [:name:], which is not supported");
      const Characters first = read_class_item();
      const bool is_range = is_one(first) && reader_.sees("-") && !reader_.sees("-]");
      if (!is_range) {
        ranges.insert(ranges.end(), first.begin(), first.end());
        continue;
      }
      reader_.next();
      const Characters last = read_class_item();
      if (!is_one(last) || last[0].first < first[0].first) reader_.fail("has a range of characters that is reversed");
      ranges.push_back({first[0].first, last[0].first});
    }
    reader_.next();
    Characters set = characters_of(std::move(ranges));
    return is_complement ? complement(set) : set;
  }

  static bool is_one(const Characters& set) { return set.size() == 1 && set[0].first == set[0].last; }

  Characters read_class_item() {
    if (reader_.sees("\\")) return read_escape(true);
    const char32_t character = reader_.next();
    return {{character, character}};
  }

  Characters read_escape(bool is_in_class) {
    reader_.next();
    const char32_t letter = reader_.next();
    switch (letter) {
      case 'd':
        return kDigits;
      case 'D':
        return complement(kDigits);
      case 'w':
        return kWords;
      case 'W':
        return complement(kWords);
      case 's':
        return kSpaces;
      case 'S':
        return complement(kSpaces);
      case 'b':
        if (is_in_class) return {{'\b', '\b'}};
        break;
      default:
        break;
    }
    const char32_t character = escaped_character(letter);
    return {{character, character}};
  }

  char32_t escaped_character(char32_t letter) {
    switch (letter) {
      case 't':
        return '\t';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'x':
        return reader_.scalar(reader_.take("{") ? reader_.hexadecimal_in_braces() : reader_.hexadecimal(2));
      case 'u':
        return reader_.scalar(reader_.take("{") ? reader_.hexadecimal_in_braces() : code_units());
      default:
        break;
    }
    const bool is_name = letter < 0x80 && (is_digit(static_cast<char>(letter)) || (letter | 0x20) - 'a' < 26U);
    if (is_name) reader_.fail(fmt::format("has \\{}, which is not supported", static_cast<char>(letter)));
    return letter;
  }

  // \uHHHH, or two of them that are a surrogate pair.
  char32_t code_units() {
    const char32_t first = reader_.hexadecimal(4);
    if (first < kFirstSurrogate || first >= kFirstLowSurrogate || !reader_.take("\\u")) return first;
    const char32_t second = reader_.hexadecimal(4);
    if (second < kFirstLowSurrogate || second > kLastSurrogate) reader_.fail("has half a surrogate pair");
    return 0x10000 + ((first - kFirstSurrogate) << 10) + (second - kFirstLowSurrogate);
  }

  TextReader reader_;
  int depth_ = 0;
};

}  // namespace

Expression read_regex(std::string_view pattern) { return without_anchors(RegexReader(pattern).read()); }

Expression read_search_regex(std::string_view pattern) {
  const Expression anything = repeat_of(one_of(complement({})), 0, kUnbounded);
  std::vector<Expression> ways;
  for (Branch& branch : RegexReader(pattern).read()) {
    std::vector<Expression> parts;
    if (!branch.is_at_begin) parts.push_back(anything);
    parts.insert(parts.end(), branch.parts.begin(), branch.parts.end());
    if (!branch.is_at_end) parts.push_back(anything);
    ways.push_back(sequence_of(std::move(parts)));
  }
  return choice_of(std::move(ways));
}

}  // namespace weft::grammar
