#pragma once

// str() and repr() of values, and Python's shortest text of a float.

#include <string>
#include <string_view>

#include "io/jinja/value.h"

namespace weft::jinja {

// Collects text within the budget.
class Printer {
 public:
  explicit Printer(Budget& budget) : budget_(budget) {}

  void append(std::string_view text);
  // str(): a string unchanged, an undefined value as empty text, each other value as repr().
  void append_str(const Value& value);
  void append_repr(const Value& value);
  std::string take() { return std::move(text_); }

 private:
  void append_sequence(const Value& value);
  void append_items(const Value& value, std::string_view open, std::string_view close);
  void append_dict(const Dict& dict);

  Budget& budget_;
  std::string text_;
  int depth_ = 0;
};

// str(value).
std::string to_text(Budget& budget, const Value& value);

// The shortest decimal text that parses to the same double, in Python's layout: 1.0, 0.1, 1e+16, 1e-05, inf, nan.
std::string real_text(double value);

}  // namespace weft::jinja
