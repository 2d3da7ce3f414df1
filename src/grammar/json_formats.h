#pragma once

// The formats of strings that are enforced: the shape of each as a regular expression.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::grammar {

// Nullopt for a format that is not known.
std::optional<std::string> format_pattern(std::string_view name);
std::vector<std::string> format_names();

}  // namespace weft::grammar
