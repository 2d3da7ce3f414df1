#include "io/jinja/number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <system_error>

#include <fmt/core.h>

#include "io/jinja/budget.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

int digit_value(char byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'z') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'Z') return byte - 'A' + 10;
  return 99;
}

bool is_decimal_digit(char byte) { return byte >= '0' && byte <= '9'; }

// Returns the text without the underscores between digits, or nullopt if there is an underscore elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const bool between = i > 0 && i + 1 < text.size() && digit_value(text[i - 1]) < 36 && digit_value(text[i + 1]) < 36;
    if (!between) return std::nullopt;
  }
  return out;
}

// Returns the base of the prefix, or 0 if there is none.
std::int64_t prefix_base(std::string_view text) {
  if (text.size() < 2 || text[0] != '0') return 0;
  switch (text[1]) {
    case 'x':
    case 'X':
      return 16;
    case 'o':
    case 'O':
      return 8;
    case 'b':
    case 'B':
      return 2;
    default:
      return 0;
  }
}

bool has_sign(std::string_view text) { return !text.empty() && (text[0] == '-' || text[0] == '+'); }

// Checks for digits, a point and an exponent in this order. strtod alone would also accept hexadecimal numbers.
bool is_decimal_number(std::string_view text) {
  std::size_t position = has_sign(text) ? 1 : 0;
  std::size_t digits = 0;
  const auto skip_digits = [&] {
    const std::size_t begin = position;
    while (position < text.size() && is_decimal_digit(text[position])) ++position;
    return position - begin;
  };
  digits += skip_digits();
  if (position < text.size() && text[position] == '.') {
    ++position;
    digits += skip_digits();
  }
  if (digits == 0) return false;
  if (position < text.size() && (text[position] == 'e' || text[position] == 'E')) {
    ++position;
    if (position < text.size() && (text[position] == '-' || text[position] == '+')) ++position;
    if (skip_digits() == 0) return false;
  }
  return position == text.size();
}

bool is_special_number(std::string_view text) {
  std::string word(text.substr(has_sign(text) ? 1 : 0));
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char byte) { return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte; });
  return word == "inf" || word == "infinity" || word == "nan";
}

// Unlike strtod, always expects "." as the decimal point, whatever the locale.
double read_decimal(std::string_view text) {
  const bool negative = text[0] == '-';
  if (has_sign(text)) text.remove_prefix(1);
  double value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc::result_out_of_range) {
    const std::size_t mark = text.find_first_of("eE");
    const bool small = mark != std::string_view::npos ? text[mark + 1] == '-' : text[0] == '0' || text[0] == '.';
    value = small ? 0.0 : std::numeric_limits<double>::infinity();
  }
  return negative ? -value : value;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) fail_template("int() base must be >= 2 and <= 36, or 0");
  text = strip_space(text, Side::both);
  const bool negative = !text.empty() && text[0] == '-';
  if (has_sign(text)) text.remove_prefix(1);
  const std::int64_t prefix = prefix_base(text);
  if (prefix != 0 && (base == 0 || base == prefix)) {
    base = prefix;
    text.remove_prefix(2);
    if (!text.empty() && text[0] == '_') text.remove_prefix(1);
  } else if (base == 0) {
    // Like Python, rejects "012", which other languages read as octal.
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos) return {};
    base = 10;
  }
  const auto digits = without_underscores(text);
  if (!digits || digits->empty()) return std::nullopt;
  if (std::any_of(digits->begin(), digits->end(), [base](char byte) { return digit_value(byte) >= base; })) return {};
  std::int64_t result = 0;
  for (const char byte : *digits) {
    const std::int64_t digit = negative ? -digit_value(byte) : digit_value(byte);
    if (__builtin_mul_overflow(result, base, &result) || __builtin_add_overflow(result, digit, &result))
      fail_template("an integer beyond 64 bits");
  }
  return result;
}

std::optional<double> parse_real(std::string_view text) {
  const auto number = without_underscores(strip_space(text, Side::both));
  if (!number || !(is_decimal_number(*number) || is_special_number(*number))) return std::nullopt;
  return read_decimal(*number);
}

std::int64_t truncate_real(double number) {
  if (std::isnan(number)) fail_template("cannot convert float NaN to integer");
  if (std::isinf(number)) fail_template("cannot convert float infinity to integer");
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (number >= kTwoTo63 || number < -kTwoTo63) fail_template("an integer beyond 64 bits");
  return static_cast<std::int64_t>(number);
}

double round_real(double number, std::int64_t digits) {
  // Above 323 digits, a double has no digits to round; below -308, the result is always 0.
  if (!std::isfinite(number) || digits > 323) return number;
  if (digits < -308) return std::copysign(0.0, number);
  if (digits >= 0) return read_decimal(fmt::format("{:.{}f}", number, static_cast<int>(digits)));
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(number / unit) * unit;
}

}  // namespace weft::jinja
