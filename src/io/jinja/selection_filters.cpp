// Filters that apply another filter or a test to each item: map, select, reject, selectattr, rejectattr.

#include "io/jinja/filters.h"
#include "io/jinja/iteration.h"
#include "io/jinja/tests.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

const std::string& name_argument(std::string_view callee, const Arguments& arguments, std::size_t place) {
  if (!arguments.positional[place].is_string()) fail_template("{}() needs a name", callee);
  return arguments.positional[place].text();
}

// A false value has no items, even if its type cannot be iterated.
std::shared_ptr<const std::vector<Value>> items_of(Runtime& runtime, const Value& input) {
  return is_true(input) ? iterate(runtime.budget(), input) : std::make_shared<const std::vector<Value>>();
}

Value map_attribute(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("map", arguments, {"attribute", "default"}, 1);
  std::vector<Value> mapped;
  const auto items = items_of(runtime, input);
  for (const Value& item : *items) {
    runtime.budget().step();
    mapped.push_back(attribute_path(runtime, item, values[0], values[1]));
  }
  return make_iterator(runtime.budget(), std::move(mapped));
}

Value map(Runtime& runtime, const Value& input, const Arguments& arguments) {
  if (arguments.positional.empty()) return map_attribute(runtime, input, arguments);
  const std::string& name = name_argument("map", arguments, 0);
  const Filter* filter = find_filter(name);
  if (filter == nullptr) fail_template("unknown filter {}", quote(name));
  const Runtime::Level level(runtime);
  const Arguments rest = arguments_after(arguments, 1);
  std::vector<Value> mapped;
  const auto items = items_of(runtime, input);
  for (const Value& item : *items) {
    runtime.budget().step();
    mapped.push_back(filter->apply(runtime, item, rest));
  }
  return make_iterator(runtime.budget(), std::move(mapped));
}

// With `by_attribute`, the first argument is the attribute that the test examines. Without a test, the truth of the
// examined value decides.
template <bool wanted, bool by_attribute>
Value select(Runtime& runtime, const Value& input, const Arguments& arguments) {
  constexpr std::size_t kTestPlace = by_attribute ? 1 : 0;
  if (arguments.positional.size() < kTestPlace) fail_template("selectattr() needs the name of an attribute");
  const Test* test = nullptr;
  if (arguments.positional.size() > kTestPlace) {
    const std::string& name = name_argument("select", arguments, kTestPlace);
    test = find_test(name);
    if (test == nullptr) fail_template("unknown test {}", quote(name));
  }
  const Arguments rest = arguments_after(arguments, kTestPlace + 1);
  std::vector<Value> selected;
  const auto items = items_of(runtime, input);
  for (const Value& item : *items) {
    runtime.budget().step();
    const Value looked_at = by_attribute ? attribute_path(runtime, item, &arguments.positional[0]) : item;
    const bool holds = test != nullptr ? test->holds(runtime, looked_at, rest) : is_true(looked_at);
    if (holds == wanted) selected.push_back(item);
  }
  return make_iterator(runtime.budget(), std::move(selected));
}

constexpr Filter kSelectionFilters[] = {
    {"map", map},
    {"reject", select<false, false>},
    {"rejectattr", select<false, true>},
    {"select", select<true, false>},
    {"selectattr", select<true, true>},
};

}  // namespace

std::span<const Filter> selection_filters() { return kSelectionFilters; }

}  // namespace weft::jinja
