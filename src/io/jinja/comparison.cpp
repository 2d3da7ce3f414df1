#include "io/jinja/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "io/jinja/iteration.h"

namespace weft::jinja {

namespace {

// Returns -1, 0 or 1, or 2 if one of them is NaN. The wide type represents every 64-bit integer and every double
// exactly.
int order_numbers(const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral())
    return left.integer() < right.integer() ? -1 : (left.integer() > right.integer() ? 1 : 0);
  static_assert(std::numeric_limits<long double>::digits >= 64);
  const auto widen = [](const Value& value) {
    return value.is_integral() ? static_cast<long double>(value.integer()) : static_cast<long double>(value.real());
  };
  const long double a = widen(left);
  const long double b = widen(right);
  if (std::isnan(a) || std::isnan(b)) return 2;
  return a < b ? -1 : (a > b ? 1 : 0);
}

bool equal_dicts(Budget& budget, const Dict& left, const Dict& right) {
  if (left.size() != right.size()) return false;
  return std::all_of(left.entries().begin(), left.entries().end(), [&](const Dict::Entry& entry) {
    const Value* other = right.find(entry.key);
    return other != nullptr && is_equal(budget, entry.value, *other);
  });
}

bool equal_sequences(Budget& budget, const Value& left, const Value& right) {
  if (left.kind() != right.kind() || left.is(Kind::iterator)) return false;
  return std::equal(left.items().begin(), left.items().end(), right.items().begin(), right.items().end(),
                    [&](const Value& a, const Value& b) { return is_equal(budget, a, b); });
}

bool contains(Budget& budget, const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string()) fail_template("'in <string>' requires a string as left operand, not {}", type_name(item));
    budget.search(container.text().size(), item.text().size());
    return container.text().find(item.text()) != std::string::npos;
  }
  if (container.is_dict()) {
    budget.step(item.weight());
    return container.dict().find(item) != nullptr;
  }
  const auto items = iterate(budget, container);
  return std::any_of(items->begin(), items->end(),
                     [&](const Value& candidate) { return is_equal(budget, candidate, item); });
}

bool order(Budget& budget, Operator operation, const Value& left, const Value& right) {
  require_defined(left);
  require_defined(right);
  // For totally ordered values, a <= b is !(b < a). NaN is the exception, so numbers are compared separately.
  if (left.is_number() && right.is_number()) {
    const int order = order_numbers(left, right);
    if (order == 2) return false;
    if (operation == Operator::less) return order < 0;
    if (operation == Operator::less_equal) return order <= 0;
    return operation == Operator::greater ? order > 0 : order >= 0;
  }
  const bool comparable = (left.is_string() && right.is_string()) ||
                          (left.kind() == right.kind() && (left.is(Kind::list) || left.is(Kind::tuple)));
  if (!comparable)
    fail_template("'{}' not supported between instances of '{}' and '{}'", symbol(operation), type_name(left),
                  type_name(right));
  if (left.is_string()) {
    // The byte order of UTF-8 is the order of the code points.
    budget.step(std::min(left.weight(), right.weight()));
    const int order = left.text().compare(right.text());
    if (operation == Operator::less) return order < 0;
    if (operation == Operator::less_equal) return order <= 0;
    return operation == Operator::greater ? order > 0 : order >= 0;
  }
  const auto& a = left.items();
  const auto& b = right.items();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (!is_equal(budget, a[i], b[i])) return order(budget, operation, a[i], b[i]);
  return order(budget, operation, Value::integer(static_cast<std::int64_t>(a.size())),
               Value::integer(static_cast<std::int64_t>(b.size())));
}

}  // namespace

bool is_equal(Budget& budget, const Value& left, const Value& right) {
  budget.step();
  if (left.is_number() && right.is_number()) return order_numbers(left, right) == 0;
  if (left.is_sequence() && right.is_sequence()) {
    return left.identity() == right.identity() || equal_sequences(budget, left, right);
  }
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::string:
      if (left.identity() == right.identity()) return true;
      if (left.text().size() != right.text().size()) return false;
      budget.step(left.weight());
      return left.text() == right.text();
    case Kind::dict:
      return left.identity() == right.identity() || equal_dicts(budget, left.dict(), right.dict());
    case Kind::object:
      return left.object() == right.object();
    default:
      return true;
  }
}

bool is_less(Budget& budget, const Value& left, const Value& right) {
  budget.step();
  return order(budget, Operator::less, left, right);
}

bool compare(Budget& budget, Operator operation, const Value& left, const Value& right) {
  switch (operation) {
    case Operator::equal:
      return is_equal(budget, left, right);
    case Operator::not_equal:
      return !is_equal(budget, left, right);
    case Operator::contained:
      return contains(budget, right, left);
    case Operator::not_contained:
      return !contains(budget, right, left);
    default:
      return order(budget, operation, left, right);
  }
}

}  // namespace weft::jinja
