#include "tensor/dim_condition.h"

#include "base/error.h"

namespace weft {
namespace {

Truth opposite(Truth truth) {
  if (truth == Truth::unknown) return truth;
  return truth == Truth::yes ? Truth::no : Truth::yes;
}

}  // namespace

Truth DimCondition::truth(const Bounds& bounds) const {
  switch (relation) {
    case Relation::equal:
      return compare_equal(left, right, bounds);
    case Relation::not_equal:
      return opposite(compare_equal(left, right, bounds));
    case Relation::less:
      return opposite(compare_less_equal(right, left, bounds));
    case Relation::less_equal:
      return compare_less_equal(left, right, bounds);
  }
  CHECK(false, "a comparison of dims without a relation");
}

bool DimCondition::holds(const Bindings& bindings) const {
  const std::int64_t a = left.evaluate(bindings), b = right.evaluate(bindings);
  switch (relation) {
    case Relation::equal:
      return a == b;
    case Relation::not_equal:
      return a != b;
    case Relation::less:
      return a < b;
    case Relation::less_equal:
      return a <= b;
  }
  CHECK(false, "a comparison of dims without a relation");
}

DimCondition DimCondition::negated() const {
  switch (relation) {
    case Relation::equal:
      return {left, Relation::not_equal, right};
    case Relation::not_equal:
      return {left, Relation::equal, right};
    case Relation::less:
      return {right, Relation::less_equal, left};
    case Relation::less_equal:
      return {right, Relation::less, left};
  }
  CHECK(false, "a comparison of dims without a relation");
}

std::string DimCondition::text() const {
  constexpr std::string_view kText[] = {"==", "!=", "<", "<="};
  return fmt::format("{} {} {}", left.text(), kText[static_cast<std::size_t>(relation)], right.text());
}

DimCondition operator<(const Dim& a, const Dim& b) { return {a, DimCondition::Relation::less, b}; }
DimCondition operator<=(const Dim& a, const Dim& b) { return {a, DimCondition::Relation::less_equal, b}; }
DimCondition operator>(const Dim& a, const Dim& b) { return b < a; }
DimCondition operator>=(const Dim& a, const Dim& b) { return b <= a; }
DimCondition equal(const Dim& a, const Dim& b) { return {a, DimCondition::Relation::equal, b}; }
DimCondition not_equal(const Dim& a, const Dim& b) { return {a, DimCondition::Relation::not_equal, b}; }

}  // namespace weft
