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

// Null if templates have no such method for the type of `self`.
const Method* find_method(const Value& self, std::string_view name);

// Whether the sandbox hides the attribute `name`: a Python internal, or a method that changes its object.
bool is_unsafe_attribute(const Value& self, std::string_view name);

std::span<const Method> string_methods();
std::span<const Method> string_search_methods();

// A string derived from `self`: markup if `self` is markup.
Value make_string_like(Runtime& runtime, const Value& self, std::string text);

// The text of an argument; it must be a string.
const std::string& text_argument(std::string_view callee, const Value& argument);

// str.replace; a negative limit means no limit.
std::string replace_text(Budget& budget, std::string_view text, std::string_view old, std::string_view with,
                         std::int64_t limit);

}  // namespace weft::jinja
