// Filters on single values: defaults and numbers.

#include <cmath>

#include "io/jinja/arithmetic.h"
#include "io/jinja/filters.h"
#include "io/jinja/iteration.h"
#include "io/jinja/number.h"

namespace weft::jinja {

namespace {

Value use_default(Runtime&, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("default", arguments, {"default_value", "boolean"});
  const bool also_false = values[1] != nullptr && is_true(*values[1]);
  if (!input.is_undefined() && !(also_false && !is_true(input))) return input;
  return values[0] != nullptr ? *values[0] : Value::string("");
}

Value absolute(Runtime&, const Value& input, const Arguments& arguments) {
  bind_arguments("abs", arguments, {});
  require_defined(input);
  if (!input.is_number()) fail_template("bad operand type for abs(): '{}'", type_name(input));
  const bool negative = input.is_integral() ? input.integer() < 0 : std::signbit(input.real());
  return negative ? negate(input) : keep_sign(input);
}

// Converts a number or a text to a float. nullopt if that is not possible.
std::optional<double> as_real(const Value& value) {
  if (value.is_number()) return value.real();
  return value.is_string() ? parse_real(value.text()) : std::nullopt;
}

Value to_integer(Runtime&, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("int", arguments, {"default", "base"});
  require_defined(input);
  const Value otherwise = values[0] != nullptr ? *values[0] : Value::integer(0);
  if (input.is_integral()) return Value::integer(input.integer());
  if (input.is_string()) {
    if (const auto integer = parse_integer(input.text(), integer_argument("int", values[1], 10)))
      return Value::integer(*integer);
  }
  const auto real = as_real(input);
  if (!real || std::isnan(*real) || (std::isinf(*real) && input.is_string())) return otherwise;
  return Value::integer(truncate_real(*real));
}

Value to_real(Runtime&, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("float", arguments, {"default"});
  require_defined(input);
  if (const auto real = as_real(input)) return Value::real(*real);
  return values[0] != nullptr ? *values[0] : Value::real(0);
}

// Rounds an integer to tens, hundreds and so on, and halves to even.
Value round_integer(std::int64_t number, std::int64_t digits) {
  if (digits >= 0) return Value::integer(number);
  if (digits < -18) return Value::integer(0);
  std::int64_t unit = 1;
  for (std::int64_t i = digits; i < 0; ++i) unit *= 10;
  const std::int64_t rest = ((number % unit) + unit) % unit;
  std::int64_t rounded = 0;
  if (__builtin_sub_overflow(number, rest, &rounded)) fail_template("an integer beyond 64 bits");
  const bool up = rest > unit - rest || (rest == unit - rest && (rounded / unit) % 2 != 0);
  if (up && __builtin_add_overflow(rounded, unit, &rounded)) fail_template("an integer beyond 64 bits");
  return Value::integer(rounded);
}

Value round_number(Runtime&, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("round", arguments, {"precision", "method"});
  require_defined(input);
  if (!input.is_number()) fail_template("type {} doesn't define __round__ method", type_name(input));
  const std::int64_t digits = integer_argument("round", values[0], 0);
  const bool has_method = values[1] != nullptr && values[1]->is_string();
  const std::string method = has_method ? values[1]->text() : "common";
  if (values[1] != nullptr && method == "common" && !has_method) fail_template("method must be common, ceil or floor");
  if (method == "common")
    return input.is_integral() ? round_integer(input.integer(), digits) : Value::real(round_real(input.real(), digits));
  if (method != "ceil" && method != "floor") fail_template("method must be common, ceil or floor");
  const double unit = std::pow(10.0, static_cast<double>(digits));
  const double scaled = input.real() * unit;
  if (!std::isfinite(scaled) || unit == 0)
    fail_template("round() of a number that is not finite or with too many digits");
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

Value count_filter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind_arguments("length", arguments, {});
  return Value::integer(length(runtime.budget(), input));
}

constexpr Filter kValueFilters[] = {
    {"abs", absolute},  {"count", count_filter}, {"d", use_default},       {"default", use_default},
    {"float", to_real}, {"int", to_integer},     {"length", count_filter}, {"round", round_number},
};

}  // namespace

std::span<const Filter> value_filters() { return kValueFilters; }

}  // namespace weft::jinja
