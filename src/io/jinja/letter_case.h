#pragma once

// Python's upper, lower and title case of UTF-8 text, with the letters that become several (German sharp s,
// ligatures): Unicode's SpecialCasing.txt, its unconditional part, and the final sigma.

#include <string>
#include <string_view>

namespace weft::jinja {

bool is_upper(char32_t code);
bool is_lower(char32_t code);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
// str.title: letters after a non-letter become title case, the others lower case.
std::string to_title(std::string_view text);
std::string capitalize(std::string_view text);
std::string swap_case(std::string_view text);

// Upper-cases the first character of a word and lower-cases the rest, as Jinja's title filter does.
std::string upper_first(std::string_view word);

}  // namespace weft::jinja
