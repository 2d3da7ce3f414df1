#include "grammar/json_number.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "grammar/regex.h"

namespace weft::grammar {
namespace {

constexpr int kMostWholeDigits = 18;
constexpr int kMostDigitsOfMultiple = 15;  // readers divide doubles
constexpr int kLongestNumber = 400;

Expression digits(char first, char last) {
  return one_of({{static_cast<char32_t>(first), static_cast<char32_t>(last)}});
}
Expression any_digits(int least, int most) { return repeat_of(digits('0', '9'), least, most); }
Expression nothing_matches() { return choice_of({}); }

// Numbers without a sign on one side of a bound. `up`: greater ones.
struct Side {
  bool up, includes_bound, has_fraction;
};

// Fractions, with their point, on the side of that of the bound; none is zero.
Expression fractions_beyond(const std::string& bound, Side side) {
  if (!side.has_fraction) {  // the fraction is zero
    const bool is_beyond = bound.empty() ? side.includes_bound : !side.up;
    return is_beyond ? text_of("") : nothing_matches();
  }
  const Expression zeros = repeat_of(text_of("0"), 0, kUnbounded), any = any_digits(0, kUnbounded);
  std::vector<Expression> ways;
  if (side.up ? bound.empty() && side.includes_bound : !bound.empty() || side.includes_bound)
    ways.push_back(text_of(""));
  std::vector<Expression> after_point;
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const Expression same = text_of(bound.substr(0, i));
    const char digit = bound[i];
    if (side.up && digit < '9')
      after_point.push_back(sequence_of({same, digits(static_cast<char>(digit + 1), '9'), any}));
    if (!side.up && digit > '0')
      after_point.push_back(sequence_of({same, digits('0', static_cast<char>(digit - 1)), any}));
    if (!side.up && i > 0) after_point.push_back(same);  // shorter, so smaller: the bound does not end with a zero
  }
  if (side.includes_bound)
    after_point.push_back(sequence_of({text_of(bound), bound.empty() ? text_of("0") : text_of(""), zeros}));
  if (side.up) after_point.push_back(sequence_of({text_of(bound), zeros, digits('1', '9'), any}));
  ways.push_back(sequence_of({text_of("."), choice_of(std::move(after_point))}));
  return choice_of(std::move(ways));
}

// Integers without a sign or leading zeros that are greater or less than the bound.
Expression integers_beyond(const std::string& bound, bool up) {
  std::vector<Expression> ways;
  const auto length = static_cast<int>(bound.size());
  if (up) {
    ways.push_back(sequence_of({digits('1', '9'), any_digits(length, kUnbounded)}));
  } else if (length > 1) {
    ways.push_back(text_of("0"));
    ways.push_back(sequence_of({digits('1', '9'), any_digits(0, length - 2)}));
  }
  for (int i = 0; i < length; ++i) {
    const char digit = bound[static_cast<std::size_t>(i)];
    const char least = i == 0 && length > 1 ? '1' : '0';
    const char first = up ? static_cast<char>(digit + 1) : least, last = up ? '9' : static_cast<char>(digit - 1);
    if (first > last) continue;
    const auto others = length - i - 1;
    ways.push_back(sequence_of(
        {text_of(bound.substr(0, static_cast<std::size_t>(i))), digits(first, last), any_digits(others, others)}));
  }
  return choice_of(std::move(ways));
}

// Numbers without a sign on the side of the bound, whose own sign does not count.
Expression magnitudes_beyond(const Decimal& bound, Side side) {
  const Expression any_fraction =
      side.has_fraction ? optional_of(sequence_of({text_of("."), any_digits(1, kUnbounded)})) : text_of("");
  return choice_of({sequence_of({integers_beyond(bound.whole, side.up), any_fraction}),
                    sequence_of({text_of(bound.whole), fractions_beyond(bound.fraction, side)})});
}

Expression all_magnitudes(bool has_fraction) {
  return read_regex(has_fraction ? R"((0|[1-9][0-9]*)(\.[0-9]+)?)" : "0|[1-9][0-9]*");
}

// At least 18 digits, which 64 bits hold, and enough for the bounds of this sign and for the number next to each.
int most_whole_digits(const NumberBounds& bounds, bool is_negative) {
  std::size_t most = kMostWholeDigits;
  for (const std::optional<Decimal>* bound : {&bounds.minimum, &bounds.maximum, &bounds.above, &bounds.below}) {
    if (!*bound || (*bound)->is_negative != is_negative) continue;
    const bool is_exceeded = bound == (is_negative ? &bounds.below : &bounds.above);
    const bool is_last = (*bound)->whole.find_first_not_of('9') == std::string::npos;
    most = std::max(most, (*bound)->whole.size() + (is_exceeded && is_last ? 1 : 0));
  }
  return static_cast<int>(most);
}

// What a bound leaves of the numbers with and without a minus.
struct Signed {
  Expression negative, positive;
};

void apply_bound(const std::optional<Decimal>& bound, bool is_lower, bool includes_bound, bool has_fraction,
                 Signed& numbers) {
  if (!bound) return;
  Expression& same_sign = bound->is_negative ? numbers.negative : numbers.positive;
  Expression& other_sign = bound->is_negative ? numbers.positive : numbers.negative;
  // Below zero the greater number is the smaller one without its sign.
  const bool up = is_lower != bound->is_negative;
  same_sign = both_of(same_sign, magnitudes_beyond(*bound, {up, includes_bound, has_fraction}));
  if (is_lower == bound->is_negative) return;  // the numbers of the other sign are all within it
  // -0 equals a bound of 0.
  other_sign = bound->is_zero() && includes_bound
                   ? both_of(other_sign, magnitudes_beyond(*bound, {false, true, has_fraction}))
                   : nothing_matches();
}

Signed bounded(const NumberBounds& bounds, bool has_fraction) {
  Signed numbers{all_magnitudes(has_fraction), all_magnitudes(has_fraction)};
  apply_bound(bounds.minimum, true, true, has_fraction, numbers);
  apply_bound(bounds.above, true, false, has_fraction, numbers);
  apply_bound(bounds.maximum, false, true, has_fraction, numbers);
  apply_bound(bounds.below, false, false, has_fraction, numbers);
  // A bound of zero is positive; of the negative numbers "maximum 0" keeps all, but "below 0" must not keep -0.
  if (bounds.below && bounds.below->is_zero())
    numbers.negative = both_of(numbers.negative, magnitudes_beyond({}, {true, false, has_fraction}));
  return numbers;
}

Expression with_sign(Signed numbers) {
  return choice_of({sequence_of({text_of("-"), std::move(numbers.negative)}), std::move(numbers.positive)});
}

// The digits of the multiples of `factor`: rule r has what follows digits that leave the remainder r.
Expression multiples_of(int factor, int most_digits, Grammar& grammar) {
  const int base = static_cast<int>(grammar.rules.size());
  for (int remainder = 0; remainder < factor; ++remainder) grammar.add("multiple");
  for (int remainder = 0; remainder < factor; ++remainder) {
    std::vector<Expression> ways;
    for (char digit = '0'; digit <= '9'; ++digit)
      ways.push_back(sequence_of({digits(digit, digit), jump_to(base + (remainder * 10 + (digit - '0')) % factor)}));
    if (remainder == 0) ways.push_back(text_of(""));
    grammar.rules[static_cast<std::size_t>(base + remainder)].body = choice_of(std::move(ways));
  }
  return both_of(any_digits(1, most_digits), jump_to(base));
}

// A number beyond an exclusive bound may be rounded to the bound when it is read as a double: the next double is the
// bound then. Nothing is rounded to zero, and bounds that are no double have no next one.
void exclude_rounded(std::optional<Decimal>& exclusive, std::optional<Decimal>& inclusive, bool is_lower) {
  if (!exclusive || exclusive->is_zero()) return;
  const double value = std::strtod(exclusive->text().c_str(), nullptr);
  if (!std::isfinite(value) || Decimal::from_text(fmt::format("{}", value)) != *exclusive) return;
  const double next = std::nextafter(value, is_lower ? INFINITY : -INFINITY);
  if (!std::isfinite(next)) return;
  const Decimal bound = Decimal::from_text(fmt::format("{}", next));
  if (!inclusive || (is_lower ? *inclusive < bound : bound < *inclusive)) inclusive = bound;
  exclusive.reset();
}

}  // namespace

Decimal Decimal::from_text(const std::string& text) {
  Decimal decimal;
  std::string number = to_lower_ascii(text);
  if (number.starts_with('-')) {
    decimal.is_negative = true;
    number.erase(0, 1);
  }
  int exponent = 0;
  if (const auto e = number.find('e'); e != std::string::npos) {
    exponent = std::atoi(number.c_str() + e + 1);
    number.erase(e);
  }
  USER_CHECK(exponent > -kLongestNumber && exponent < kLongestNumber, "[schema] the bound {} is too large",
             quote(text));
  const auto point = number.find('.');
  std::string all = number;
  int whole_digits = static_cast<int>(number.size());
  if (point != std::string::npos) {
    all.erase(point, 1);
    whole_digits = static_cast<int>(point);
  }
  whole_digits += exponent;
  if (whole_digits < 1) {
    all.insert(0, static_cast<std::size_t>(1 - whole_digits), '0');
    whole_digits = 1;
  }
  const auto cut = static_cast<std::size_t>(whole_digits);
  if (all.size() < cut) all.append(cut - all.size(), '0');
  decimal.whole = all.substr(0, cut);
  decimal.fraction = all.substr(cut);
  decimal.whole.erase(0, std::min(decimal.whole.find_first_not_of('0'), decimal.whole.size() - 1));
  while (decimal.fraction.ends_with('0')) decimal.fraction.pop_back();
  if (decimal.is_zero()) decimal.is_negative = false;
  return decimal;
}

std::strong_ordering operator<=>(const Decimal& a, const Decimal& b) {
  if (a.is_negative != b.is_negative) return b.is_negative <=> a.is_negative;
  const Decimal &less = a.is_negative ? b : a, &other = a.is_negative ? a : b;
  if (less.whole.size() != other.whole.size()) return less.whole.size() <=> other.whole.size();
  if (less.whole != other.whole) return less.whole <=> other.whole;
  return less.fraction <=> other.fraction;  // without zeros at their ends
}

Expression integers_within(const NumberBounds& bounds, Grammar& grammar) {
  Signed numbers = bounded(bounds, false);
  numbers.negative = both_of(numbers.negative, read_regex("[1-9][0-9]*"));  // many readers take -0 for a real number
  const int negative_digits = most_whole_digits(bounds, true), positive_digits = most_whole_digits(bounds, false);
  numbers.negative = both_of(numbers.negative, any_digits(1, negative_digits));
  numbers.positive = both_of(numbers.positive, any_digits(1, positive_digits));
  if (bounds.multiple_of != 1) {
    const int longest = std::max(negative_digits, positive_digits);
    const int most_digits = longest > kMostWholeDigits ? longest : kMostDigitsOfMultiple;
    const Expression multiples = multiples_of(bounds.multiple_of, most_digits, grammar);
    numbers = {both_of(numbers.negative, multiples), both_of(numbers.positive, multiples)};
  }
  return with_sign(std::move(numbers));
}

int digits_for(const NumberBounds& bounds) {
  std::size_t longest = kMostDigits;
  for (const std::optional<Decimal>* bound : {&bounds.minimum, &bounds.maximum, &bounds.above, &bounds.below})
    if (*bound) longest = std::max(longest, (*bound)->whole.size() + (*bound)->fraction.size() + 1);
  return static_cast<int>(longest);
}

Expression numbers_within(NumberBounds bounds, int most_digits) {
  exclude_rounded(bounds.above, bounds.minimum, true);
  exclude_rounded(bounds.below, bounds.maximum, false);
  const Expression digit_or_point = one_of({{'.', '.'}, {'0', '9'}});
  const Expression fits =
      choice_of({any_digits(1, std::max(kMostWholeDigits, most_digits)),
                 both_of(read_regex(R"([1-9][0-9]*\.[0-9]+)"), repeat_of(digit_or_point, 3, most_digits + 1)),
                 // Four zeros after the point, as writers have them before they write an exponent.
                 sequence_of({text_of("0."), repeat_of(text_of("0"), 0, 4), any_digits(1, most_digits)})});
  Signed numbers = bounded(bounds, true);
  return with_sign({both_of(numbers.negative, fits), both_of(numbers.positive, fits)});
}

}  // namespace weft::grammar
