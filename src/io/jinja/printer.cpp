#include "io/jinja/printer.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

#include "io/jinja/object.h"
#include "io/jinja/text.h"

namespace weft::jinja {

void Printer::append(std::string_view text) {
  budget_.check_text(text_.size() + text.size());
  budget_.allocate(text.size());
  text_ += text;
}

void Printer::append_str(const Value& value) {
  if (value.is_string()) {
    append(value.text());
  } else if (!value.is_undefined()) {
    append_repr(value);
  }
}

void Printer::append_repr(const Value& value) {
  // Only a namespace can contain itself; then the recursion would not end.
  if (++depth_ > 2 * kMaxNesting) fail_template("a namespace contains itself and cannot be printed");
  budget_.step();
  switch (value.kind()) {
    case Kind::undefined:
      append("Undefined");
      break;
    case Kind::none:
      append("None");
      break;
    case Kind::boolean:
      append(value.integer() != 0 ? "True" : "False");
      break;
    case Kind::integer:
      append(fmt::format("{}", value.integer()));
      break;
    case Kind::real:
      append(real_text(value.real()));
      break;
    case Kind::string:
      append(value.is_markup() ? "Markup(" + quote(value.text()) + ")" : quote(value.text()));
      break;
    case Kind::dict:
      append_dict(value.dict());
      break;
    case Kind::object:
      value.object()->print(*this);
      break;
    default:
      append_sequence(value);
  }
  --depth_;
}

void Printer::append_sequence(const Value& value) {
  switch (value.kind()) {
    case Kind::tuple:
      append_items(value, "(", value.items().size() == 1 ? ",)" : ")");
      break;
    case Kind::range:
      append(value.sequence().label);
      break;
    case Kind::view:
      append(value.sequence().label);
      append_items(value, "([", "])");
      break;
    case Kind::iterator:
      fail_template("a {} has no text that could be printed; make it a list first", value.sequence().label);
    default:
      append_items(value, "[", "]");
  }
}

void Printer::append_items(const Value& value, std::string_view open, std::string_view close) {
  append(open);
  std::string_view separator;
  for (const Value& item : value.items()) {
    append(separator);
    append_repr(item);
    separator = ", ";
  }
  append(close);
}

void Printer::append_dict(const Dict& dict) {
  append("{");
  std::string_view separator;
  for (const auto& [key, value] : dict.entries()) {
    append(separator);
    append_repr(key);
    append(": ");
    append_repr(value);
    separator = ", ";
  }
  append("}");
}

std::string to_text(Budget& budget, const Value& value) {
  Printer printer(budget);
  printer.append_str(value);
  return printer.take();
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  const std::string_view scientific(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t mark = scientific.find('e');
  // The exponent always has a sign.
  int exponent = 0;
  std::from_chars(scientific.data() + mark + 2, scientific.data() + scientific.size(), exponent);
  if (scientific[mark + 1] == '-') exponent = -exponent;
  // Python writes numbers with exponents from -4 to 15 without an `e`.
  if (exponent < -4 || exponent >= 16) return std::string(scientific);

  const std::string sign = scientific.front() == '-' ? "-" : "";
  std::string digits;
  for (const char byte : scientific.substr(0, mark))
    if (byte >= '0' && byte <= '9') digits += byte;
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace weft::jinja
