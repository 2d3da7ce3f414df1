#pragma once

// The value of a quoted string in a template.

#include <string>
#include <string_view>

namespace weft::jinja {

// Writes the string to `text` with Python's escapes (\n, \x41, \u00e9, ...) replaced; unknown escapes stay. Returns an
// error message, or "".
std::string unescape(std::string_view quoted, std::string& text);

}  // namespace weft::jinja
