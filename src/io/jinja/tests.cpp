#include "io/jinja/tests.h"

#include <algorithm>

#include "io/jinja/comparison.h"
#include "io/jinja/filters.h"
#include "io/jinja/iteration.h"
#include "io/jinja/methods.h"
#include "io/jinja/printer.h"

namespace weft::jinja {

namespace {

void require_no_arguments(const Arguments& arguments) { bind_arguments("test", arguments, {}); }

// Returns the single argument of the test, which is required.
const Value& only_argument(const Arguments& arguments) { return *bind_arguments("test", arguments, {"other"}, 1)[0]; }

template <Kind kind>
bool is_kind(Runtime&, const Value& value, const Arguments& arguments) {
  require_no_arguments(arguments);
  return value.is(kind);
}

bool is_defined(Runtime&, const Value& value, const Arguments& arguments) {
  require_no_arguments(arguments);
  return !value.is_undefined();
}

bool is_number(Runtime&, const Value& value, const Arguments& arguments) {
  require_no_arguments(arguments);
  return value.is_number();
}

template <bool truth>
bool is_truth(Runtime&, const Value& value, const Arguments& arguments) {
  require_no_arguments(arguments);
  return value.is(Kind::boolean) && is_true(value) == truth;
}

bool is_sequence(Runtime&, const Value& value, const Arguments& arguments) {
  require_no_arguments(arguments);
  return value.is_undefined() || value.is_string() || value.is_dict() || value.is(Kind::list) ||
         value.is(Kind::tuple) || value.is(Kind::range);
}

bool can_iterate(Runtime&, const Value& value, const Arguments& arguments) {
  require_no_arguments(arguments);
  return is_iterable(value);
}

bool is_callable(Runtime&, const Value& value, const Arguments& arguments) {
  require_no_arguments(arguments);
  // Python regards an undefined value as callable, because only the call raises its error.
  return value.is_undefined() || (value.is(Kind::object) && value.object()->is_callable());
}

bool is_escaped(Runtime&, const Value& value, const Arguments& arguments) {
  require_no_arguments(arguments);
  return value.is_markup();
}

// Compares the identity of objects. Equal scalars of one type are the same, as they usually are in Python.
bool is_same(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const Value& other = only_argument(arguments);
  if (value.kind() != other.kind()) return false;
  if (value.is_sequence() || value.is_dict()) return value.identity() == other.identity();
  return is_equal(runtime.budget(), value, other);
}

template <bool odd>
bool has_parity(Runtime& runtime, const Value& value, const Arguments& arguments) {
  require_no_arguments(arguments);
  const Value rest = calculate(runtime.budget(), Operator::modulo, value, Value::integer(2));
  return is_equal(runtime.budget(), rest, Value::integer(odd ? 1 : 0));
}

bool is_divisible(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const Value rest = calculate(runtime.budget(), Operator::modulo, value, only_argument(arguments));
  return is_equal(runtime.budget(), rest, Value::integer(0));
}

template <Operator operation>
bool compares(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return compare(runtime.budget(), operation, value, only_argument(arguments));
}

template <bool upper>
bool has_case(Runtime& runtime, const Value& value, const Arguments& arguments) {
  require_no_arguments(arguments);
  const Value text = Value::string(to_text(runtime.budget(), value));
  return is_true(find_method(text, upper ? "isupper" : "islower")->call(runtime, text, {}));
}

bool names_filter(Runtime&, const Value& value, const Arguments& arguments) {
  require_no_arguments(arguments);
  return value.is_string() && find_filter(value.text()) != nullptr;
}

bool names_test(Runtime&, const Value& value, const Arguments& arguments) {
  require_no_arguments(arguments);
  return value.is_string() && find_test(value.text()) != nullptr;
}

constexpr Test kTests[] = {
    {"!=", compares<Operator::not_equal>},
    {"<", compares<Operator::less>},
    {"<=", compares<Operator::less_equal>},
    {"==", compares<Operator::equal>},
    {">", compares<Operator::greater>},
    {">=", compares<Operator::greater_equal>},
    {"boolean", is_kind<Kind::boolean>},
    {"callable", is_callable},
    {"defined", is_defined},
    {"divisibleby", is_divisible},
    {"eq", compares<Operator::equal>},
    {"equalto", compares<Operator::equal>},
    {"escaped", is_escaped},
    {"even", has_parity<false>},
    {"false", is_truth<false>},
    {"filter", names_filter},
    {"float", is_kind<Kind::real>},
    {"ge", compares<Operator::greater_equal>},
    {"greaterthan", compares<Operator::greater>},
    {"gt", compares<Operator::greater>},
    {"in", compares<Operator::contained>},
    {"integer", is_kind<Kind::integer>},
    {"iterable", can_iterate},
    {"le", compares<Operator::less_equal>},
    {"lessthan", compares<Operator::less>},
    {"lower", has_case<false>},
    {"lt", compares<Operator::less>},
    {"mapping", is_kind<Kind::dict>},
    {"ne", compares<Operator::not_equal>},
    {"none", is_kind<Kind::none>},
    {"number", is_number},
    {"odd", has_parity<true>},
    {"sameas", is_same},
    {"sequence", is_sequence},
    {"string", is_kind<Kind::string>},
    {"test", names_test},
    {"true", is_truth<true>},
    {"undefined", is_kind<Kind::undefined>},
    {"upper", has_case<true>},
};

}  // namespace

const Test* find_test(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kTests), std::end(kTests), [name](const Test& test) { return test.name == name; });
  return found == std::end(kTests) ? nullptr : found;
}

}  // namespace weft::jinja
