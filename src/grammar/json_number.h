#pragma once

// Numbers of JSON within bounds, as expressions.

#include <compare>
#include <optional>
#include <string>

#include "grammar/grammar.h"

namespace weft::grammar {

// A decimal number: -12.5 is {true, "12", "5"}. Without leading zeros before the point and trailing ones after it.
struct Decimal {
  bool is_negative = false;
  std::string whole = "0", fraction = {};

  bool is_zero() const { return whole == "0" && fraction.empty(); }
  std::string text() const { return (is_negative ? "-" : "") + whole + (fraction.empty() ? "" : "." + fraction); }
  friend bool operator==(const Decimal&, const Decimal&) = default;

  // From a number as JSON writes it, also with an exponent. UserError where that is too large to write out.
  static Decimal from_text(const std::string& text);
};
std::strong_ordering operator<=>(const Decimal& a, const Decimal& b);

struct NumberBounds {
  std::optional<Decimal> minimum = {}, maximum = {}, above = {}, below = {};
  int multiple_of = 1;  // of integers

  bool has_any() const { return minimum || maximum || above || below || multiple_of != 1; }
};

// Exactly the integers within the bounds, of at most 18 digits, which 64 bits hold, or as many as the bounds have;
// multiples have at most 15 digits unless the bounds have more than 18.
Expression integers_within(const NumberBounds& bounds, Grammar& grammar);
inline constexpr int kMostDigits = 17;  // they distinguish all doubles
// Numbers of at most `most_digits` digits, without an exponent; kMostDigits is the least. A reader of doubles sees them
// within the bounds, too.
Expression numbers_within(NumberBounds bounds, int most_digits);
// Enough digits for there to be such numbers if there are any within the bounds.
int digits_for(const NumberBounds& bounds);

}  // namespace weft::grammar
