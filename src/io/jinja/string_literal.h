#pragma once

// What a quoted string of a template stands for.

#include <string>
#include <string_view>

namespace weft::jinja {

// Replaces Python's escapes (\n, \x41, \u00e9, ...) and keeps unknown ones as they are. Returns what is wrong, or
// nothing.
std::string unescape(std::string_view quoted, std::string& text);

}  // namespace weft::jinja
