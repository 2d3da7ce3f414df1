#pragma once

// The formats of strings that are enforced: the shape of each as a regular expression.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::grammar {

// Nullopt for a format that is not known.
std::optional<std::string> format_pattern(std::string_view name);
// The most characters of such a text, which its shape does not limit; nullopt if any number may be there.
std::optional<int> longest_of_format(std::string_view name);
std::vector<std::string> format_names();

}  // namespace weft::grammar
