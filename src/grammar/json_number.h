#pragma once

// Numbers of JSON within bounds, as expressions.

#include <optional>
#include <string>

#include "grammar/grammar.h"

namespace weft::grammar {

// A decimal number: -12.5 is {true, "12", "5"}. Without leading zeros before the point and trailing ones after it.
struct Decimal {
  bool is_negative = false;
  std::string whole = "0", fraction = {};

  bool is_zero() const { return whole == "0" && fraction.empty(); }

  // From a number as JSON writes it, also with an exponent. UserError where that is too large to write out.
  static Decimal from_text(const std::string& text);
};

struct NumberBounds {
  std::optional<Decimal> minimum = {}, maximum = {}, above = {}, below = {};
  int multiple_of = 1;  // of integers

  bool has_any() const { return minimum || maximum || above || below || multiple_of != 1; }
};

// Exactly the integers within the bounds, of at most 18 digits, which 64 bits hold; of at most 15 if they are
// multiples.
Expression integers_within(const NumberBounds& bounds, Grammar& grammar);
// Numbers of at most 15 digits without an exponent: a double distinguishes those, so that a reader of doubles sees them
// within the bounds, too.
Expression numbers_within(const NumberBounds& bounds);

}  // namespace weft::grammar
