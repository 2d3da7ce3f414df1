#include "io/jinja/iteration.h"

#include "io/jinja/text.h"

namespace weft::jinja {

bool is_true(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.integer() != 0;
    case Kind::real:
      return value.real() != 0;
    case Kind::string:
      return !value.text().empty();
    case Kind::dict:
      return value.dict().size() != 0;
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
    case Kind::view:
      return !value.items().empty();
    default:
      return true;
  }
}

bool is_iterable(const Value& value) {
  return value.is_undefined() || value.is_string() || value.is_dict() || value.is_sequence();
}

std::shared_ptr<const std::vector<Value>> iterate(Budget& budget, const Value& value) {
  if (value.is(Kind::iterator)) {
    Sequence& sequence = value.sequence();
    const auto begin = sequence.items.begin() + static_cast<std::ptrdiff_t>(sequence.consumed);
    budget.allocate((sequence.items.size() - sequence.consumed) * sizeof(Value));
    sequence.consumed = sequence.items.size();
    return std::make_shared<const std::vector<Value>>(begin, sequence.items.end());
  }
  if (value.is_sequence()) {
    const auto sequence = value.shared_sequence();
    return {sequence, &sequence->items};
  }
  if (!is_iterable(value)) fail_template("'{}' object is not iterable", type_name(value));
  auto items = std::make_shared<std::vector<Value>>();
  if (value.is_dict()) {
    budget.step(value.dict().size());
    budget.allocate(value.dict().size() * sizeof(Value));
    for (const auto& entry : value.dict().entries()) items->push_back(entry.key);
  } else if (value.is_string()) {
    // Each character becomes a separate string.
    constexpr std::uint64_t kCharacterBytes = 96;
    budget.step(value.text().size());
    budget.allocate(value.text().size() * kCharacterBytes);
    for (const std::string_view character : split_characters(value.text()))
      items->push_back(Value::string(std::string(character)));
  }
  return items;
}

std::int64_t length(Budget& budget, const Value& value) {
  if (value.is_undefined()) return 0;
  budget.step(value.is_string() ? value.weight() : 1);
  if (value.is_string()) return static_cast<std::int64_t>(character_count(value.text()));
  if (value.is_dict()) return static_cast<std::int64_t>(value.dict().size());
  if (!value.is_sequence() || value.is(Kind::iterator))
    fail_template("object of type '{}' has no len()", type_name(value));
  return static_cast<std::int64_t>(value.items().size());
}

}  // namespace weft::jinja
