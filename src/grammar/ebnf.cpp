#include "grammar/ebnf.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "grammar/text_reader.h"

namespace weft::grammar {
namespace {

constexpr int kMostRepetitionsOfRules = 10'000, kMostRepetitionsInARow = 4;

bool is_name_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
}

class EbnfReader {
 public:
  explicit EbnfReader(std::string_view text) : reader_(text, "grammar") {}

  Grammar read() {
    skip_blanks();
    while (!reader_.at_end()) read_rule();
    for (const Rule& rule : grammar_.rules)
      USER_CHECK(rule.body != nullptr, "[grammar] the rule {} is used, but not defined", quote(rule.name));
    const auto root = rules_.find("root");
    USER_CHECK(root != rules_.end(), "[grammar] wanted a rule with the name root, where the text begins");
    grammar_.root = root->second;
    return std::move(grammar_);
  }

 private:
  void skip_blanks() {
    for (;;) {
      while (reader_.take(" ") || reader_.take("\t") || reader_.take("\r") || reader_.take("\n")) {
      }
      if (reader_.peek() != '#') return;
      while (!reader_.at_end() && reader_.peek() != '\n') reader_.next();
    }
  }

  std::string read_name() {
    std::string name;
    // A point may be within a name, but alone it is any character.
    while (is_name_character(reader_.peek()) && (!name.empty() || reader_.peek() != '.'))
      name += static_cast<char>(reader_.next());
    return name;
  }

  int rule_of(const std::string& name) {
    const auto [found, is_new] = rules_.try_emplace(name, 0);
    if (is_new) found->second = grammar_.add(name);
    return found->second;
  }

  // Whether a rule begins here.
  bool sees_rule() {
    const std::size_t offset = reader_.offset();
    const bool has_name = !read_name().empty();
    skip_blanks();
    const bool is = has_name && reader_.sees("::=");
    reader_.set_offset(offset);
    return is;
  }

  void read_rule() {
    const std::string name = read_name();
    skip_blanks();
    if (name.empty() || !reader_.take("::=")) reader_.fail("wanted a rule: name ::= ...");
    const auto rule = static_cast<std::size_t>(rule_of(name));
    if (grammar_.rules[rule].body != nullptr) reader_.fail(fmt::format("defines the rule {} twice", quote(name)));
    Expression body = read_alternation();
    grammar_.rules[rule].body = std::move(body);
  }

  Expression read_alternation() {
    if (++depth_ > kDeepestGroup) reader_.fail(fmt::format("has more than {} groups in each other", kDeepestGroup));
    std::vector<Expression> ways;
    do {
      skip_blanks();
      std::vector<Expression> parts;
      while (!reader_.at_end() && reader_.peek() != '|' && reader_.peek() != ')' && !sees_rule())
        parts.push_back(read_repeats(read_item()));
      ways.push_back(sequence_of(std::move(parts)));
    } while (reader_.take("|"));
    --depth_;
    return ways.size() == 1 ? ways[0] : choice_of(std::move(ways));
  }

  Expression read_item() {
    if (reader_.take("\"")) return read_text();
    if (reader_.take("[")) return one_of(read_class());
    if (reader_.take("(")) {
      Expression group = read_alternation();
      if (!reader_.take(")")) reader_.fail("wanted )");
      return group;
    }
    if (reader_.take(".")) return one_of(complement({}));
    const std::string name = read_name();
    if (name.empty()) reader_.fail("wanted a text, a class of characters, a group or the name of a rule");
    return call_of(rule_of(name));
  }

  Expression read_repeats(Expression part) {
    for (int count = 0;; ++count) {
      if (count > kMostRepetitionsInARow) reader_.fail("repeats a repetition too often");
      skip_blanks();
      if (reader_.take("*")) {
        part = repeat_of(std::move(part), 0, kUnbounded);
      } else if (reader_.take("+")) {
        part = repeat_of(std::move(part), 1, kUnbounded);
      } else if (reader_.take("?")) {
        part = optional_of(std::move(part));
      } else if (reader_.take("{")) {
        part = read_bounds(std::move(part));
      } else {
        return part;
      }
    }
  }

  Expression read_bounds(Expression part) {
    skip_blanks();
    const std::optional<int> least = reader_.decimal(kMostRepetitionsOfRules);
    std::optional<int> most = least;
    skip_blanks();
    if (reader_.take(",")) {
      skip_blanks();
      most = reader_.decimal(kMostRepetitionsOfRules);
      skip_blanks();
    } else if (!least) {
      reader_.fail("wanted a number in {}");
    }
    if (!reader_.take("}")) reader_.fail("wanted }");
    if (most && *most < least.value_or(0)) reader_.fail("has a repetition whose bounds are reversed");
    return repeat_of(std::move(part), least.value_or(0), most.value_or(kUnbounded));
  }

  Expression read_text() {
    std::string text;
    while (!reader_.take("\"")) append_utf8(read_character(), text);
    return text_of(std::move(text));
  }

  Characters read_class() {
    const bool is_complement = reader_.take("^");
    std::vector<CharacterRange> ranges;
    while (!reader_.take("]")) {
      const char32_t first = read_character();
      char32_t last = first;
      if (reader_.sees("-") && !reader_.sees("-]")) {
        reader_.next();
        last = read_character();
      }
      if (last < first) reader_.fail("has a range of characters that is reversed");
      ranges.push_back({first, last});
    }
    Characters set = characters_of(std::move(ranges));
    return is_complement ? complement(set) : set;
  }

  char32_t read_character() {
    if (reader_.sees("\n")) reader_.fail("has a line feed in a text: write \\n");
    const char32_t character = reader_.next();
    if (character != '\\') return character;
    const char32_t letter = reader_.next();
    switch (letter) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return reader_.hexadecimal(2);
      case 'u':
        return reader_.scalar(reader_.hexadecimal(4));
      case 'U':
        return reader_.scalar(reader_.hexadecimal(8));
      default:
        break;
    }
    constexpr std::u32string_view kThemselves = U"\"'\\[]-^/.(){}|*+?$";
    if (kThemselves.find(letter) == std::u32string_view::npos) reader_.fail("has an escape that is not known");
    return letter;
  }

  TextReader reader_;
  Grammar grammar_;
  std::map<std::string, int> rules_;
  int depth_ = 0;
};

}  // namespace

Grammar read_ebnf(std::string_view text) { return EbnfReader(text).read(); }

}  // namespace weft::grammar
