#pragma once

// Python's upper, lower and title case of UTF-8 text. It includes letters that become several letters (German sharp s,
// ligatures), from the unconditional part of Unicode's SpecialCasing.txt, and the final sigma.

#include <string>
#include <string_view>

namespace weft::jinja {

bool is_upper(char32_t code);
bool is_lower(char32_t code);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
// str.title: a letter after a non-letter becomes title case, each other letter lower case.
std::string to_title(std::string_view text);
std::string capitalize(std::string_view text);
std::string swap_case(std::string_view text);

// Upper-cases the first character of a word and lower-cases the rest, as Jinja's title filter does.
std::string upper_first(std::string_view word);

}  // namespace weft::jinja
