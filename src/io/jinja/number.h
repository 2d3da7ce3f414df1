#pragma once

// Reading numbers out of text as Python's int() and float() do.

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::jinja {

// int(text, base): spaces around, a sign, underscores between digits, a prefix such as 0x where the base allows it.
// Nothing when it is no integer; TemplateFailure beyond 64 bits or for a base outside 0, 2..36.
std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t base = 10);

// float(text), with "inf" and "nan".
std::optional<double> parse_real(std::string_view text);

// int(number): cut toward zero. Throws TemplateFailure when it is not finite or beyond 64 bits.
std::int64_t truncate_real(double number);

// round(number, digits): to the nearest decimal, halves (of the exact binary value) to even.
double round_real(double number, std::int64_t digits);

}  // namespace weft::jinja
