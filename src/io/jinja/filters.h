#pragma once

// Jinja's filters: `value | name(arguments)`.

#include <span>
#include <string_view>

#include "io/jinja/object.h"
#include "io/jinja/runtime.h"

namespace weft::jinja {

struct Filter {
  std::string_view name;
  Value (*apply)(Runtime& runtime, const Value& input, const Arguments& arguments);
};

// Null when there is no such filter.
const Filter* find_filter(std::string_view name);

// The filters, grouped by their input. find_filter searches all groups.
std::span<const Filter> text_filters();
std::span<const Filter> value_filters();
std::span<const Filter> sequence_filters();
std::span<const Filter> selection_filters();
std::span<const Filter> order_filters();

// Looks up an attribute as filters define it: "a.b.0" is item(item(item(x, "a"), "b"), 0), and an integer is an index.
// For an absent or none attribute the result is the value itself. `otherwise`, if given, replaces an undefined result.
Value attribute_path(Runtime& runtime, const Value& value, const Value* attribute, const Value* otherwise = nullptr);

// The arguments after the first `count` positional ones.
Arguments arguments_after(const Arguments& arguments, std::size_t count);

}  // namespace weft::jinja
