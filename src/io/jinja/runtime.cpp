#include "io/jinja/runtime.h"

#include <algorithm>

#include <fmt/core.h>

#include "io/jinja/arithmetic.h"
#include "io/jinja/iteration.h"
#include "io/jinja/methods.h"
#include "io/jinja/printer.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

// A method that was read from its value but not yet called: `{% set f = text.upper %}`.
class BoundMethod : public Object {
 public:
  BoundMethod(const Method& method, Value self) : method_(method), self_(std::move(self)) {}
  std::string type_name() const override { return "builtin_function_or_method"; }
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override { return method_.call(runtime, self_, arguments); }

 private:
  const Method& method_;
  Value self_;
};

Value missing_attribute(const Value& object, std::string_view name) {
  const std::string owner = object.is_none() ? "None" : "'" + type_name(object) + " object'";
  // A template can contain names of any length, so the message shows at most 100 bytes.
  return Value::undefined(fmt::format("{} has no attribute {}", owner, quote(name.substr(0, 100))));
}

// Resolves an index, which may be negative to count from the end. nullopt if it is out of range.
std::optional<std::size_t> place_index(std::int64_t index, std::size_t count) {
  const auto size = static_cast<std::int64_t>(count);
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  return static_cast<std::size_t>(index);
}

// Returns the byte offset of the character with this index, or the end of the text if there is none.
std::size_t byte_position(std::string_view text, std::size_t character, bool ascii) {
  if (ascii) return std::min(character, text.size());
  std::size_t position = 0;
  for (std::size_t i = 0; i < character && position < text.size(); ++i) position += character_at(text, position).bytes;
  return position;
}

std::optional<Value> character_of(Budget& budget, const Value& value, std::int64_t index) {
  const std::string& text = value.text();
  budget.step(value.weight());
  const bool ascii = is_ascii(text);
  const auto place = place_index(index, ascii ? text.size() : character_count(text));
  if (!place) return std::nullopt;
  const std::size_t begin = byte_position(text, *place, ascii);
  return Value::string(text.substr(begin, character_at(text, begin).bytes), value.is_markup());
}

// The positions first, first + step, ... that a slice selects, with the rules of Python.
struct Positions {
  std::int64_t first = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;
};

Positions slice_positions(std::size_t size_in_items, const Value& start, const Value& stop, const Value& step_value) {
  const std::int64_t step = integer_argument("slice", &step_value, 1);
  if (step == 0) fail_template("slice step cannot be zero");
  const auto size = static_cast<std::int64_t>(size_in_items);
  const auto clamp = [&](const Value& bound, std::int64_t otherwise) {
    if (bound.is_none()) return otherwise;
    std::int64_t position = integer_argument("slice", &bound, 0);
    if (position < 0) position = position < -size ? -1 : position + size;
    return std::clamp<std::int64_t>(position, step < 0 ? -1 : 0, step < 0 ? size - 1 : size);
  };
  const std::int64_t first = clamp(start, step < 0 ? size - 1 : 0);
  const std::int64_t last = clamp(stop, step < 0 ? -1 : size);
  const std::int64_t distance = step < 0 ? first - last : last - first;
  if (distance <= 0) return {};
  // A step beyond the distance selects one item, so any such step can be replaced by the distance.
  const std::int64_t stride = step < -distance || step > distance ? distance : (step < 0 ? -step : step);
  return {first, step < 0 ? -stride : stride, (distance - 1) / stride + 1};
}

Value slice_string(Budget& budget, const Value& value, const Value& start, const Value& stop, const Value& step) {
  const std::string& text = value.text();
  budget.step(1 + text.size() / 16);
  const bool ascii = is_ascii(text);
  const Positions taken = slice_positions(ascii ? text.size() : character_count(text), start, stop, step);
  if (taken.step == 1) {
    const std::size_t begin = byte_position(text, static_cast<std::size_t>(taken.first), ascii);
    const std::string_view rest = std::string_view(text).substr(begin);
    const std::size_t end = byte_position(rest, static_cast<std::size_t>(taken.count), ascii);
    return make_string(budget, std::string(rest.substr(0, end)), value.is_markup());
  }
  std::vector<std::string_view> characters;
  if (!ascii) {
    budget.allocate(text.size() * sizeof(std::string_view));
    characters = split_characters(text);
  }
  std::string out;
  for (std::int64_t i = 0; i < taken.count; ++i) {
    const auto position = static_cast<std::size_t>(taken.first + i * taken.step);
    out += ascii ? std::string_view(text).substr(position, 1) : characters[position];
  }
  return make_string(budget, std::move(out), value.is_markup());
}

}  // namespace

std::optional<Value> Runtime::own_attribute(const Value& object, std::string_view name) {
  require_defined(object);
  if (is_unsafe_attribute(object, name)) {
    return Value::undefined(
        fmt::format("access to attribute {} of '{}' object is unsafe", quote(name), jinja::type_name(object)));
  }
  if (const Method* method = find_method(object, name)) return Value::object(make<BoundMethod>(*method, object));
  if (object.is(Kind::object)) return object.object()->attribute(*this, name);
  if (object.is(Kind::tuple) && object.sequence().label == "group") {
    if (name == "grouper") return object.items()[0];
    if (name == "list") return object.items()[1];
  }
  return std::nullopt;
}

std::optional<Value> Runtime::own_item(const Value& object, const Value& key) {
  require_defined(object);
  budget_.step(key.weight());
  if (object.is_dict()) {
    if (key.is(Kind::list) || key.is_dict()) return std::nullopt;
    const Value* found = object.dict().find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  if (!key.is_integral()) return std::nullopt;
  if (object.is_string()) return character_of(budget_, object, key.integer());
  if (!object.is(Kind::list) && !object.is(Kind::tuple) && !object.is(Kind::range)) return std::nullopt;
  const auto place = place_index(key.integer(), object.items().size());
  return place ? std::optional(object.items()[*place]) : std::nullopt;
}

Value Runtime::attribute(const Value& object, std::string_view name) {
  if (auto found = own_attribute(object, name)) return *found;
  if (object.is_dict()) {
    if (const Value* found = object.dict().find(name)) return *found;
  }
  return missing_attribute(object, name);
}

Value Runtime::item(const Value& object, const Value& key) {
  if (auto found = own_item(object, key)) return *found;
  if (key.is_string()) {
    if (auto found = own_attribute(object, key.text())) return *found;
    return missing_attribute(object, key.text());
  }
  return Value::undefined(
      fmt::format("{} has no element of that {} key", jinja::type_name(object), jinja::type_name(key)));
}

Value Runtime::slice(const Value& object, const Value& start, const Value& stop, const Value& step) {
  require_defined(object);
  if (object.is_string()) return slice_string(budget_, object, start, stop, step);
  if (!object.is(Kind::list) && !object.is(Kind::tuple) && !object.is(Kind::range))
    fail_template("'{}' object cannot be sliced", jinja::type_name(object));
  std::vector<Value> items;
  const Positions taken = slice_positions(object.items().size(), start, stop, step);
  budget_.allocate(static_cast<std::uint64_t>(taken.count) * sizeof(Value));
  for (std::int64_t i = 0; i < taken.count; ++i)
    items.push_back(object.items()[static_cast<std::size_t>(taken.first + i * taken.step)]);
  // In Python, a slice of a range is a range and prints as one. Here it is a list of the same numbers.
  return make_sequence(budget_, object.is(Kind::tuple) ? Kind::tuple : Kind::list, std::move(items));
}

Value Runtime::call(const Value& callee, const Arguments& arguments) {
  require_defined(callee);
  if (!callee.is(Kind::object) || !callee.object()->is_callable())
    fail_template("'{}' object is not callable", jinja::type_name(callee));
  return callee.object()->call(*this, arguments);
}

}  // namespace weft::jinja
