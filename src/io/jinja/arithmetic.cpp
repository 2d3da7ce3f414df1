#include "io/jinja/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/markup.h"
#include "io/jinja/format.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

[[noreturn]] void fail_types(Operator operation, const Value& left, const Value& right) {
  fail_template("unsupported operand type(s) for {}: '{}' and '{}'", symbol(operation), type_name(left),
                type_name(right));
}

[[noreturn]] void fail_overflow() { fail_template("an integer beyond 64 bits"); }

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  // With any other base, the result overflows 64 bits before iteration 64.
  for (std::int64_t i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(result, base, &result)) fail_overflow();
  return result;
}

std::int64_t floor_quotient(std::int64_t left, std::int64_t right) {
  if (right == 0) fail_template("integer division or modulo by zero");
  if (right == -1) {
    std::int64_t result = 0;
    if (__builtin_sub_overflow(std::int64_t{0}, left, &result)) fail_overflow();
    return result;
  }
  const std::int64_t quotient = left / right;
  return left % right != 0 && (left < 0) != (right < 0) ? quotient - 1 : quotient;
}

Value calculate_integers(Operator operation, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  switch (operation) {
    case Operator::add:
      if (__builtin_add_overflow(left, right, &result)) fail_overflow();
      return Value::integer(result);
    case Operator::subtract:
      if (__builtin_sub_overflow(left, right, &result)) fail_overflow();
      return Value::integer(result);
    case Operator::multiply:
      if (__builtin_mul_overflow(left, right, &result)) fail_overflow();
      return Value::integer(result);
    case Operator::divide:
      if (right == 0) fail_template("division by zero");
      return Value::real(static_cast<double>(left) / static_cast<double>(right));
    case Operator::floor_divide:
      return Value::integer(floor_quotient(left, right));
    case Operator::modulo:
      if (right == -1) return Value::integer(0);
      return Value::integer(left - floor_quotient(left, right) * right);
    default:
      if (right >= 0) return Value::integer(integer_power(left, right));
      if (left == 0) fail_template("0.0 cannot be raised to a negative power");
      return Value::real(std::pow(static_cast<double>(left), static_cast<double>(right)));
  }
}

// The remainder has the divisor's sign, as in Python.
double floor_remainder(double left, double right) {
  if (right == 0) fail_template("float floor division or modulo by zero");
  const double remainder = std::fmod(left, right);
  if (remainder == 0) return std::copysign(0.0, right);
  return (right < 0) != (remainder < 0) ? remainder + right : remainder;
}

double real_floor_quotient(double left, double right) {
  const double quotient = (left - floor_remainder(left, right)) / right;
  if (quotient == 0) return std::copysign(0.0, left / right);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

double real_power(double left, double right) {
  if (left == 0 && right < 0) fail_template("0.0 cannot be raised to a negative power");
  const double result = std::pow(left, right);
  if (std::isnan(result) && !std::isnan(left) && !std::isnan(right)) fail_template("complex numbers are not supported");
  if (std::isinf(result) && std::isfinite(left) && std::isfinite(right)) fail_template("a float power too large");
  return result;
}

Value calculate_reals(Operator operation, double left, double right) {
  switch (operation) {
    case Operator::add:
      return Value::real(left + right);
    case Operator::subtract:
      return Value::real(left - right);
    case Operator::multiply:
      return Value::real(left * right);
    case Operator::divide:
      if (right == 0) fail_template("float division by zero");
      return Value::real(left / right);
    case Operator::floor_divide:
      return Value::real(real_floor_quotient(left, right));
    case Operator::modulo:
      return Value::real(floor_remainder(left, right));
    default:
      return Value::real(real_power(left, right));
  }
}

Value join_strings(Budget& budget, const Value& left, const Value& right) {
  const bool markup = left.is_markup() || right.is_markup();
  std::string text = markup && !left.is_markup() ? escape_markup(left.text()) : left.text();
  budget.check_text(text.size() + right.text().size());
  text += markup && !right.is_markup() ? escape_markup(right.text()) : right.text();
  return make_string(budget, std::move(text), markup);
}

Value join_sequences(Budget& budget, const Value& left, const Value& right) {
  budget.allocate((left.items().size() + right.items().size()) * sizeof(Value));
  std::vector<Value> items = left.items();
  items.insert(items.end(), right.items().begin(), right.items().end());
  return make_sequence(budget, left.kind(), std::move(items));
}

Value repeat(Budget& budget, const Value& value, std::int64_t times) {
  const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(0, times));
  if (value.is_string()) {
    const std::string& text = value.text();
    if (text.empty() || count == 0) return Value::string("", value.is_markup());
    if (count > std::numeric_limits<std::uint64_t>::max() / text.size()) fail_template("a text that is too long");
    budget.check_text(count * text.size());
    std::string result;
    result.reserve(count * text.size());
    for (std::uint64_t i = 0; i < count; ++i) result += text;
    return make_string(budget, std::move(result), value.is_markup());
  }
  const std::vector<Value>& items = value.items();
  if (items.empty() || count == 0) return make_sequence(budget, value.kind(), {});
  if (count > std::numeric_limits<std::uint32_t>::max()) fail_template("a list that is too long");
  budget.allocate(count * items.size() * sizeof(Value));
  std::vector<Value> result;
  result.reserve(count * items.size());
  for (std::uint64_t i = 0; i < count; ++i) result.insert(result.end(), items.begin(), items.end());
  return make_sequence(budget, value.kind(), std::move(result));
}

bool is_repeatable(const Value& value) { return value.is_string() || value.is(Kind::list) || value.is(Kind::tuple); }

}  // namespace

std::string_view symbol(Operator operation) {
  constexpr std::string_view kSymbols[] = {
      "+", "-", "*", "/", "//", "%", "** or pow()", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kSymbols[static_cast<std::size_t>(operation)];
}

void require_defined(const Value& value) {
  if (value.is_undefined()) fail_template("{}", value.why());
}

Value calculate(Budget& budget, Operator operation, const Value& left, const Value& right) {
  require_defined(left);
  // A format string accepts any value and prints an undefined value as an empty string.
  if (operation == Operator::modulo && left.is_string()) return format_percent(budget, left, right);
  require_defined(right);
  if (left.is_number() && right.is_number()) {
    if (left.is_integral() && right.is_integral())
      return calculate_integers(operation, left.integer(), right.integer());
    return calculate_reals(operation, left.real(), right.real());
  }
  if (operation == Operator::add) {
    if (left.is_string() && right.is_string()) return join_strings(budget, left, right);
    if (left.kind() == right.kind() && (left.is(Kind::list) || left.is(Kind::tuple)))
      return join_sequences(budget, left, right);
  }
  if (operation == Operator::multiply) {
    if (is_repeatable(left) && right.is_integral()) return repeat(budget, left, right.integer());
    if (is_repeatable(right) && left.is_integral()) return repeat(budget, right, left.integer());
  }
  fail_types(operation, left, right);
}

Value negate(const Value& value) {
  require_defined(value);
  if (value.is(Kind::real)) return Value::real(-value.real());
  if (!value.is_integral()) fail_template("bad operand type for unary -: '{}'", type_name(value));
  return calculate_integers(Operator::subtract, 0, value.integer());
}

Value keep_sign(const Value& value) {
  require_defined(value);
  if (value.is(Kind::real)) return value;
  if (!value.is_integral()) fail_template("bad operand type for unary +: '{}'", type_name(value));
  return Value::integer(value.integer());
}

}  // namespace weft::jinja
