#include "grammar/json_parts.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "grammar/automaton.h"
#include "grammar/budget.h"
#include "grammar/regex.h"

namespace weft::grammar {
namespace {

constexpr int kWidestIndent = 20;

constexpr std::pair<char, char> kShortEscapes[] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'\b', 'b'},
                                                   {'\f', 'f'}, {'\n', 'n'},  {'\r', 'r'}, {'\t', 't'}};

Expression hexadecimal_digits(char32_t first, char32_t last) {
  std::vector<CharacterRange> ranges;
  for (char32_t digit = first; digit <= last; ++digit) {
    if (digit < 10) {
      ranges.push_back({'0' + digit, '0' + digit});
    } else {
      ranges.push_back({'a' + digit - 10, 'a' + digit - 10});
      ranges.push_back({'A' + digit - 10, 'A' + digit - 10});
    }
  }
  return one_of(characters_of(std::move(ranges)));
}

// The numbers in [first, last] as exactly `digits` hexadecimal digits.
Expression hexadecimal_range(char32_t first, char32_t last, int digits) {
  const char32_t unit = char32_t{1} << (4 * (digits - 1));
  const char32_t top_first = first / unit, top_last = last / unit;
  if (digits == 1) return hexadecimal_digits(first, last);
  if (first % unit == 0 && last % unit == unit - 1)
    return sequence_of(
        {hexadecimal_digits(top_first, top_last), repeat_of(hexadecimal_digits(0, 15), digits - 1, digits - 1)});
  if (top_first == top_last)
    return sequence_of(
        {hexadecimal_digits(top_first, top_first), hexadecimal_range(first % unit, last % unit, digits - 1)});
  // The first and the last top digit, and those between.
  std::vector<Expression> ways = {hexadecimal_range(first, top_first * unit + unit - 1, digits),
                                  hexadecimal_range(top_last * unit, last, digits)};
  if (top_first + 1 < top_last) ways.push_back(hexadecimal_range((top_first + 1) * unit, top_last * unit - 1, digits));
  return choice_of(std::move(ways));
}

Expression unit_escape(char32_t first, char32_t last) {
  return sequence_of({text_of("\\u"), hexadecimal_range(first, last, 4)});
}

// Two escapes for characters above U+FFFF: the surrogates of UTF-16.
void add_pair_escapes(CharacterRange range, std::vector<Expression>& ways) {
  const auto add = [&](char32_t high_first, char32_t high_last, char32_t low_first, char32_t low_last) {
    ways.push_back(sequence_of({unit_escape(kFirstSurrogate + high_first, kFirstSurrogate + high_last),
                                unit_escape(kFirstLowSurrogate + low_first, kFirstLowSurrogate + low_last)}));
  };
  char32_t first = range.first - 0x10000;
  const char32_t last = range.last - 0x10000;
  if (first / 0x400 == last / 0x400) return add(first / 0x400, first / 0x400, first % 0x400, last % 0x400);
  if (first % 0x400 != 0) {
    add(first / 0x400, first / 0x400, first % 0x400, 0x3FF);
    first = (first / 0x400 + 1) * 0x400;
  }
  const char32_t high_last = last % 0x400 == 0x3FF ? last / 0x400 + 1 : last / 0x400;
  if (first / 0x400 < high_last) add(first / 0x400, high_last - 1, 0, 0x3FF);
  if (last % 0x400 != 0x3FF && first <= last) add(last / 0x400, last / 0x400, 0, last % 0x400);
}

const Characters& characters_that_need_no_escape() {
  static const Characters kSet = complement(characters_of({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}));
  return kSet;
}

}  // namespace

Expression json_encoded(const Characters& set) {
  std::vector<Expression> ways = {one_of(intersection(set, characters_that_need_no_escape()))};
  for (const auto& [character, letter] : kShortEscapes)
    if (contains(set, static_cast<unsigned char>(character))) ways.push_back(text_of({'\\', letter}));
  for (const CharacterRange& range : intersection(set, {{0, 0x1F}, {0x7F, kLastCharacter}})) {
    if (range.first <= 0xFFFF) ways.push_back(unit_escape(range.first, std::min(range.last, char32_t{0xFFFF})));
    if (range.last > 0xFFFF) add_pair_escapes({std::max(range.first, char32_t{0x10000}), range.last}, ways);
  }
  return choice_of(std::move(ways));
}

Expression json_encoded(const Expression& text) {
  const ExpressionNode& node = *text;
  std::vector<Expression> parts;
  for (const Expression& part : node.parts) parts.push_back(json_encoded(part));
  switch (node.kind) {
    case ExpressionKind::text:
      for (std::size_t offset = 0; offset < node.text.size();) {
        const Utf8Step step = utf8_step(node.text, offset);
        parts.push_back(json_encoded(Characters{{step.character, step.character}}));
        offset += step.length;
      }
      return sequence_of(std::move(parts));
    case ExpressionKind::characters:
      return json_encoded(node.set);
    case ExpressionKind::sequence:
      return sequence_of(std::move(parts));
    case ExpressionKind::choice:
      return choice_of(std::move(parts));
    case ExpressionKind::repeat:
      return repeat_of(parts[0], node.least, node.most);
    default:
      break;
  }
  fail_user("[regex] wanted an expression without rules");
}

namespace {

Expression white_space_of(const std::string& pattern, const Grammar& grammar) {
  Expression made = read_regex(pattern);
  try {
    Budget budget;
    const Automaton others =
        product_of(make_automaton(grammar, made, budget), make_automaton(grammar, read_regex("[ \\t\\n\\r]*"), budget),
                   Product::without, budget);
    const bool has_others = std::any_of(others.begin(), others.end(), [](const auto& state) { return state.accepts; });
    USER_CHECK(!has_others,
               "whitespace_pattern {} must match nothing but spaces, tabs, line feeds and carriage returns",
               quote(pattern));
  } catch (const OverBudget& error) {
    fail_user("whitespace_pattern {} {}", quote(pattern), error.what());
  }
  return made;
}

}  // namespace

Expression quoted(Expression content) { return sequence_of({text_of("\""), std::move(content), text_of("\"")}); }

JsonParts::JsonParts(Grammar& grammar, const WhiteSpace& white_space)
    : grammar_(grammar),
      has_white_space_(white_space.is_allowed),
      pattern_(white_space.pattern ? white_space_of(*white_space.pattern, grammar) : nullptr) {}

template <class MakeBody>
Expression JsonParts::rule(std::optional<int>& known, const char* name, MakeBody make_body) {
  if (!known) {
    known = grammar_.add(name);  // before its body, which may call it
    Expression body = make_body();
    grammar_.rules[static_cast<std::size_t>(*known)].body = std::move(body);
  }
  return call_of(*known);
}

Expression JsonParts::character() {
  return rule(character_, "character", [] {
    return choice_of({one_of(characters_that_need_no_escape()), read_regex(R"(\\["\\/bfnrt])"),
                      unit_escape(0, kFirstSurrogate - 1), unit_escape(kLastSurrogate + 1, 0xFFFF),
                      sequence_of({unit_escape(kFirstSurrogate, kFirstLowSurrogate - 1),
                                   unit_escape(kFirstLowSurrogate, kLastSurrogate)})});
  });
}

Expression JsonParts::string() {
  return rule(string_, "string", [this] { return quoted(characters()); });
}

Expression JsonParts::characters() {
  character();
  return repeat_of(grammar_.rules[static_cast<std::size_t>(*character_)].body, 0, kUnbounded);
}

// The beginnings that end with the first quote or with a character are counted, so there is one more of them.
Expression JsonParts::bounded_string(Expression string, int least, int most) {
  return counted_of(std::move(string), sequence_of({text_of("\""), characters()}), least + 1,
                    most == kUnbounded ? kUnbounded : most + 1);
}

// Without -0, which many readers take for a real number.
Expression JsonParts::integer() {
  return rule(integer_, "integer", [] { return read_regex("0|-?[1-9][0-9]{0,17}"); });
}

// What a double holds: an exponent of three digits from 300 on could be more.
Expression JsonParts::number() {
  return rule(number_, "number", [] {
    return read_regex(R"(-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?([0-9]{1,2}|[12][0-9]{2}))?)");
  });
}

Expression JsonParts::object() {
  return rule(object_, "object", [this] {
    return list('{', sequence_of({string(), text_of(":"), after_colon(), value()}), 0, kUnbounded, '}');
  });
}

Expression JsonParts::array() {
  return rule(array_, "array", [this] { return list('[', value(), 0, kUnbounded, ']'); });
}

Expression JsonParts::value() {
  return rule(value_, "value", [this] {
    return choice_of({object(), array(), string(), number(), boolean(), null()});
  });
}

Expression JsonParts::indent() {
  return rule(indent_, "indent", [] {
    return sequence_of({text_of("\n"), repeat_of(text_of(" "), 0, kWidestIndent)});
  });
}

Expression JsonParts::after_open() {
  if (!has_white_space_) return text_of("");
  if (pattern_ != nullptr) return rule(space_, "white space", [this] { return pattern_; });
  return optional_of(indent());
}

Expression JsonParts::after_comma() {
  if (!has_white_space_ || pattern_ != nullptr) return after_open();
  return optional_of(choice_of({text_of(" "), indent()}));
}

Expression JsonParts::after_colon() {
  if (!has_white_space_ || pattern_ != nullptr) return after_open();
  return optional_of(text_of(" "));
}

Expression JsonParts::list(char open, const Expression& item, int least, int most, char close) {
  const Expression begin = text_of({open}), end = text_of({close});
  std::vector<Expression> ways;
  if (least == 0) ways.push_back(sequence_of({begin, end}));
  if (most != 0) {
    const Expression comma = sequence_of({text_of(","), after_comma()});
    ways.push_back(sequence_of({begin, after_open(), separated(item, comma, least, most), before_close(), end}));
  }
  return choice_of(std::move(ways));
}

}  // namespace weft::grammar
