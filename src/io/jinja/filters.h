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

// By what they work on; find_filter looks through all of them.
std::span<const Filter> text_filters();
std::span<const Filter> value_filters();
std::span<const Filter> sequence_filters();
std::span<const Filter> selection_filters();
std::span<const Filter> order_filters();

// What filters call an attribute: "a.b.0" is item(item(item(x, "a"), "b"), 0); an integer is an index. An absent or
// none attribute is the value itself. `otherwise`, when given, stands for an undefined result.
Value attribute_path(Runtime& runtime, const Value& value, const Value* attribute, const Value* otherwise = nullptr);

// The arguments behind the first `count` positional ones.
Arguments arguments_after(const Arguments& arguments, std::size_t count);

}  // namespace weft::jinja
