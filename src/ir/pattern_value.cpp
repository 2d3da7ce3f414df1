#include "ir/pattern_value.h"

#include <algorithm>

namespace weft {
namespace {

bool is_text(const Attribute& attribute) {
  return std::holds_alternative<std::string>(attribute.storage()) ||
         std::holds_alternative<EnumWord>(attribute.storage());
}

}  // namespace

const Dim* lone_wildcard(const Attribute& attribute) {
  const Dim* dim = std::get_if<Dim>(&attribute.storage());
  return dim != nullptr && dim->symbol_name().starts_with('?') ? dim : nullptr;
}

bool holds_wildcard(const Attribute& attribute) {
  if (const auto* list = std::get_if<AttributeList>(&attribute.storage()))
    return std::any_of(list->begin(), list->end(), holds_wildcard);
  const Dim* dim = std::get_if<Dim>(&attribute.storage());
  return dim != nullptr && !dim->is_number() && dim->text().find('?') != std::string::npos;
}

bool same_value(const Attribute& a, const Attribute& b) {
  return a == b || (is_text(a) && is_text(b) && a.string() == b.string());
}

std::optional<double> number_of(const Attribute& attribute) {
  if (const Dim* dim = std::get_if<Dim>(&attribute.storage()); dim != nullptr && dim->is_number())
    return static_cast<double>(dim->number());
  if (const double* real = std::get_if<double>(&attribute.storage())) return *real;
  return std::nullopt;
}

bool holds(const Condition& condition, const Attribute& value) {
  if (condition.relation == Relation::one_of)
    return std::any_of(condition.operands.begin(), condition.operands.end(),
                       [&](const Attribute& allowed) { return same_value(allowed, value); });
  const std::optional<double> number = number_of(value), limit = number_of(condition.operands.at(0));
  if (!number || !limit) return false;
  switch (condition.relation) {
    case Relation::above:
      return *number > *limit;
    case Relation::at_least:
      return *number >= *limit;
    case Relation::below:
      return *number < *limit;
    default:
      return *number <= *limit;
  }
}

std::string wanted_text(const Condition& condition) {
  std::string text = condition.relation == Relation::one_of ? "" : std::string(relation_text(condition.relation)) + " ";
  for (std::size_t i = 0; i < condition.operands.size(); ++i)
    text += (i == 0 ? "" : i + 1 == condition.operands.size() ? " or " : ", ") + condition.operands[i].text();
  return text;
}

}  // namespace weft
