#include "io/jinja/methods.h"

#include <algorithm>
#include <array>

#include "io/jinja/comparison.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

Value get(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto values = bind_arguments("get", arguments, {"key", "default"}, 1);
  runtime.budget().step(values[0]->weight());
  const Value* found = self.dict().find(*values[0]);
  if (found != nullptr) return *found;
  return values[1] != nullptr ? *values[1] : Value::none();
}

enum class Part { keys, values, items };

template <Part part>
Value view(Runtime& runtime, const Value& self, const Arguments& arguments) {
  bind_arguments("dict method", arguments, {});
  std::vector<Value> items;
  runtime.budget().allocate(self.dict().size() * sizeof(Value));
  for (const auto& [key, value] : self.dict().entries()) {
    if (part == Part::keys) items.push_back(key);
    if (part == Part::values) items.push_back(value);
    if (part == Part::items) items.push_back(make_sequence(runtime.budget(), Kind::tuple, {key, value}));
  }
  constexpr const char* kLabels[] = {"dict_keys", "dict_values", "dict_items"};
  return make_sequence(runtime.budget(), Kind::view, std::move(items), kLabels[static_cast<int>(part)]);
}

Value copy(Runtime&, const Value& self, const Arguments& arguments) {
  bind_arguments("copy", arguments, {});
  return self;
}

Value count_in_list(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto values = bind_arguments("count", arguments, {"value"}, 1);
  return Value::integer(std::count_if(self.items().begin(), self.items().end(),
                                      [&](const Value& item) { return is_equal(runtime.budget(), item, *values[0]); }));
}

Value index_in_list(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto values = bind_arguments("index", arguments, {"value"}, 1);
  const auto found = std::find_if(self.items().begin(), self.items().end(),
                                  [&](const Value& item) { return is_equal(runtime.budget(), item, *values[0]); });
  if (found == self.items().end()) fail_template("the value is not in the {}", type_name(self));
  return Value::integer(found - self.items().begin());
}

constexpr Method kDictMethods[] = {
    {"copy", copy},
    {"get", get},
    {"items", view<Part::items>},
    {"keys", view<Part::keys>},
    {"values", view<Part::values>},
};
constexpr Method kListMethods[] = {{"copy", copy}, {"count", count_in_list}, {"index", index_in_list}};
constexpr Method kTupleMethods[] = {{"count", count_in_list}, {"index", index_in_list}};

constexpr std::string_view kListChanges[] = {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};
constexpr std::string_view kDictChanges[] = {"clear", "pop", "popitem", "setdefault", "update"};

const Method* find_in(std::span<const Method> methods, std::string_view name) {
  const auto found =
      std::find_if(methods.begin(), methods.end(), [name](const Method& method) { return method.name == name; });
  return found == methods.end() ? nullptr : &*found;
}

template <std::size_t count>
bool is_listed(const std::string_view (&names)[count], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

const Method* find_method(const Value& self, std::string_view name) {
  switch (self.kind()) {
    case Kind::string: {
      const Method* found = find_in(string_methods(), name);
      return found != nullptr ? found : find_in(string_search_methods(), name);
    }
    case Kind::dict:
      return find_in(kDictMethods, name);
    case Kind::list:
      return find_in(kListMethods, name);
    case Kind::tuple:
    case Kind::range:
      return find_in(kTupleMethods, name);
    default:
      return nullptr;
  }
}

bool is_unsafe_attribute(const Value& self, std::string_view name) {
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__")) return true;
  if (self.is(Kind::list)) return is_listed(kListChanges, name);
  return self.is_dict() && is_listed(kDictChanges, name);
}

}  // namespace weft::jinja
