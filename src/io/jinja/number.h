#pragma once

// Parses numbers in text as Python's int() and float() do.

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::jinja {

// int(text, base): accepts spaces around the number, a sign, underscores between digits, and a prefix such as 0x if the
// base allows it. Nullopt if the text is not an integer; TemplateFailure beyond 64 bits or for a base other than 0,
// 2..36.
std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t base = 10);

// float(text), with "inf" and "nan".
std::optional<double> parse_real(std::string_view text);

// int(number): rounds toward zero. Throws TemplateFailure if the number is not finite or is beyond 64 bits.
std::int64_t truncate_real(double number);

// round(number, digits): rounds to the nearest decimal; exact ties of the binary value go to even.
double round_real(double number, std::int64_t digits);

}  // namespace weft::jinja
