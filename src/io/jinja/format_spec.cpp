#include "io/jinja/format_spec.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "io/jinja/printer.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

bool is_alignment(char32_t code) { return code == '<' || code == '>' || code == '^' || code == '='; }

std::int64_t read_number(std::string_view text, std::size_t& position, std::int64_t largest) {
  std::int64_t number = 0;
  while (position < text.size() && text[position] >= '0' && text[position] <= '9') {
    number = number * 10 + (text[position++] - '0');
    if (number > largest) fail_template("a format width or precision beyond {}", largest);
  }
  return number;
}

std::string digits_of(std::uint64_t magnitude, const FormatSpec& spec) {
  switch (spec.type) {
    case 'b':
      return fmt::format("{:b}", magnitude);
    case 'o':
      return fmt::format("{:o}", magnitude);
    case 'x':
      return fmt::format("{:x}", magnitude);
    case 'X':
      return fmt::format("{:X}", magnitude);
    default:
      return fmt::format("{}", magnitude);
  }
}

std::string prefix_of(const FormatSpec& spec) {
  if (!spec.alternate) return "";
  switch (spec.type) {
    case 'b':
      return "0b";
    case 'o':
      return "0o";
    case 'x':
      return "0x";
    case 'X':
      return "0X";
    default:
      return "";
  }
}

// With a precision but no type, Python writes at least one digit after the point, so it changes to an exponent earlier.
std::string untyped_digits(double magnitude, int precision) {
  if (!std::isfinite(magnitude)) return real_text(magnitude);
  std::string scientific = fmt::format("{:.{}e}", magnitude, precision - 1);
  const std::size_t mark = scientific.find('e');
  const int exponent = std::stoi(scientific.substr(mark + 1));
  if (exponent >= -4 && exponent < precision - 1) {
    std::string digits = fmt::format("{:.{}g}", magnitude, precision);
    return digits.find('.') == std::string::npos ? digits + ".0" : digits;
  }
  std::string digits = scientific.substr(0, mark);
  if (digits.find('.') != std::string::npos) digits.erase(digits.find_last_not_of(".0") + 1);
  return digits + scientific.substr(mark);
}

std::string real_digits(double magnitude, const FormatSpec& spec) {
  if (spec.type == 0 && spec.precision < 0) return real_text(magnitude);
  const int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
  switch (spec.type) {
    case 'f':
      return spec.alternate ? fmt::format("{:#.{}f}", magnitude, precision)
                            : fmt::format("{:.{}f}", magnitude, precision);
    case 'F':
      return fmt::format("{:.{}F}", magnitude, precision);
    case 'e':
      return spec.alternate ? fmt::format("{:#.{}e}", magnitude, precision)
                            : fmt::format("{:.{}e}", magnitude, precision);
    case 'E':
      return fmt::format("{:.{}E}", magnitude, precision);
    case 'G':
      return fmt::format("{:.{}G}", magnitude, precision);
    case '%':
      return fmt::format("{:.{}f}%", magnitude * 100, precision);
    case 'g':
      return spec.alternate ? fmt::format("{:#.{}g}", magnitude, precision)
                            : fmt::format("{:.{}g}", magnitude, precision);
    default:
      return untyped_digits(magnitude, std::max(1, precision));
  }
}

// Inserts the separator between groups of `group` digits of the integer part.
std::string group_digits(const std::string& digits, char separator, std::size_t group) {
  const std::size_t whole = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  std::string out;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % group == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

std::string pad(const FormatSpec& spec, std::string_view head, std::string_view body, char own_alignment) {
  const auto length = static_cast<std::int64_t>(head.size() + character_count(body));
  const std::int64_t missing = std::max<std::int64_t>(0, spec.width - length);
  const auto fill = [&](std::int64_t count) {
    std::string out;
    for (std::int64_t i = 0; i < count; ++i) append_character(out, spec.fill);
    return out;
  };
  switch (spec.alignment == 0 ? own_alignment : spec.alignment) {
    case '<':
      return fmt::format("{}{}{}", head, body, fill(missing));
    case '^':
      return fmt::format("{}{}{}{}", fill(missing / 2), head, body, fill(missing - missing / 2));
    case '=':
      return fmt::format("{}{}{}", head, fill(missing), body);
    default:
      return fmt::format("{}{}{}", fill(missing), head, body);
  }
}

bool is_real_type(char type) { return std::string_view("eEfFgG%").find(type) != std::string_view::npos; }

}  // namespace

FormatSpec parse_format_spec(std::string_view text) {
  FormatSpec spec;
  std::size_t position = 0;
  const auto skip = [&](std::string_view set) -> char {
    if (position >= text.size() || set.find(text[position]) == std::string_view::npos) return 0;
    return text[position++];
  };
  if (!text.empty()) {
    const Character first = character_at(text, 0);
    if (first.bytes < text.size() && is_alignment(static_cast<unsigned char>(text[first.bytes]))) {
      spec.fill = first.code;
      position = first.bytes;
    }
  }
  spec.alignment = skip("<>^=");
  if (const char sign = skip("+- ")) spec.sign = sign;
  spec.alternate = skip("#") != 0;
  if (skip("0") != 0 && spec.alignment == 0) {
    spec.fill = '0';
    spec.alignment = '=';
  }
  spec.width = read_number(text, position, kMaxFormatWidth);
  spec.grouping = skip(",_");
  if (skip(".") != 0) {
    const std::size_t begin = position;
    spec.precision = read_number(text, position, kMaxFormatPrecision);
    if (position == begin) fail_template("Format specifier missing precision");
  }
  spec.type = skip("bcdeEfFgGnosxX%");
  if (position != text.size()) fail_template("Invalid format specifier {}", quote(text));
  return spec;
}

std::string format_number(const FormatSpec& spec, const Value& value) {
  const bool as_real = value.is(Kind::real) || is_real_type(spec.type);
  if (spec.type == 's' || spec.type == 'c' || spec.type == 'n' ||
      (as_real && spec.type != 0 && !is_real_type(spec.type)))
    fail_template("Unknown format code '{}' for object of type '{}'", spec.type, type_name(value));
  bool negative = false;
  std::string digits;
  if (as_real) {
    const double number = value.real();
    negative = std::signbit(number);
    digits = real_digits(std::fabs(number), spec);
  } else {
    if (spec.precision >= 0) fail_template("Precision not allowed in integer format specifier");
    negative = value.integer() < 0;
    const auto bits = static_cast<std::uint64_t>(value.integer());
    digits = digits_of(negative ? 0 - bits : bits, spec);
  }
  if (spec.grouping != 0) {
    const bool binary = spec.type == 'x' || spec.type == 'X' || spec.type == 'o' || spec.type == 'b';
    digits = group_digits(digits, spec.grouping, binary ? 4 : 3);
  }
  const std::string sign = negative ? "-" : (spec.sign == '-' ? "" : std::string(1, spec.sign));
  return pad(spec, sign + prefix_of(spec), digits, '>');
}

std::string format_text(const FormatSpec& spec, std::string_view text) {
  if (spec.alignment == '=') fail_template("'=' alignment not allowed in string format specifier");
  if (spec.precision >= 0) {
    std::size_t end = 0;
    for (std::int64_t i = 0; i < spec.precision && end < text.size(); ++i) end += character_at(text, end).bytes;
    text = text.substr(0, end);
  }
  return pad(spec, "", text, '<');
}

}  // namespace weft::jinja
