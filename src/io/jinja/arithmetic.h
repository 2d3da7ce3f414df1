#pragma once

// Python's operators, and the arithmetic ones among them. All functions throw TemplateFailure for incompatible types,
// for division by zero and for integer results beyond 64 bits.

#include <cstdint>
#include <string_view>

#include "io/jinja/value.h"

namespace weft::jinja {

enum class Operator : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  contained,      // in
  not_contained,  // not in
};

// The operator as Python's messages write it.
std::string_view symbol(Operator operation);

// Throws for an undefined value; the message gives the reason why it is undefined.
void require_defined(const Value& value);

// Applies one of the operators from `add` to `power`.
Value calculate(Budget& budget, Operator operation, const Value& left, const Value& right);

// Unary minus and plus.
Value negate(const Value& value);
Value keep_sign(const Value& value);

}  // namespace weft::jinja
