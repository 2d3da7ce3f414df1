#pragma once

// The format of one field of a text: width, alignment and notation.

#include <cstdint>
#include <string>
#include <string_view>

#include "io/jinja/value.h"

namespace weft::jinja {

struct FormatSpec {
  char32_t fill = ' ';
  char alignment = 0;  // '<', '>', '^', '=' (between sign and digits), or 0: the type's default
  char sign = '-';     // '-': sign of negative numbers only, '+': of all, ' ': a space for positive ones
  bool alternate = false;
  std::int64_t width = 0;
  std::int64_t precision = -1;  // -1: not given
  char grouping = 0;            // ',' or '_' between groups of digits, or 0
  char type = 0;                // 0: the default of the value's type
};

// Greater widths and precisions are errors.
inline constexpr std::int64_t kMaxFormatWidth = 100'000;
inline constexpr std::int64_t kMaxFormatPrecision = 1'000;

// Reads [[fill]align][sign][#][0][width][,][.precision][type]. Throws TemplateFailure.
FormatSpec parse_format_spec(std::string_view text);

// Writes a number in the notation of the specification. Throws TemplateFailure if the specification does not suit it.
std::string format_number(const FormatSpec& spec, const Value& value);
// Truncates a text to the precision and pads it to the width.
std::string format_text(const FormatSpec& spec, std::string_view text);

}  // namespace weft::jinja
