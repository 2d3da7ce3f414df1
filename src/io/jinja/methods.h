#pragma once

// The methods of Python's str, list, tuple and dict that a template may call.

#include <span>
#include <string>
#include <string_view>

#include "io/jinja/object.h"
#include "io/jinja/runtime.h"

namespace weft::jinja {

struct Method {
  std::string_view name;
  Value (*call)(Runtime& runtime, const Value& self, const Arguments& arguments);
};

// Null when the type of `self` has no such method here.
const Method* find_method(const Value& self, std::string_view name);

// Whether `name` is an attribute that a sandbox hides: of Python's internals, or a method that changes its object.
bool is_unsafe_attribute(const Value& self, std::string_view name);

std::span<const Method> string_methods();
std::span<const Method> string_search_methods();

// A string made from `self`: markup when `self` is.
Value make_string_like(Runtime& runtime, const Value& self, std::string text);

// The text of an argument that must be a string.
const std::string& text_argument(std::string_view callee, const Value& argument);

// str.replace; a negative limit is none.
std::string replace_text(Budget& budget, std::string_view text, std::string_view old, std::string_view with,
                         std::int64_t limit);

}  // namespace weft::jinja
