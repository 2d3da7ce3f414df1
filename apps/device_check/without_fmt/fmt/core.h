#pragma once

// The little of {fmt} that the checks of a device and what they are made of use, for machines that lack the library and
// whose compiler lacks std::format (tools/build_device_check.sh). Everywhere else the library itself is used, which
// also checks the formats when they are compiled.

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace fmt {

template <class...>
using format_string = std::string_view;

template <class Range>
struct Joined {
  const Range& range;
  std::string_view separator;
};
template <class Range>
Joined<Range> join(const Range& range, std::string_view separator) {
  return {range, separator};
}

namespace without_library {

[[noreturn]] inline void refuse(std::string_view what) {
  throw std::logic_error("a format is not known here: " + std::string(what));
}

// [#][.precision][x or f], as printf has it.
template <class Number>
std::string number_text(Number number, std::string_view form) {
  char text[400];
  if constexpr (std::is_floating_point_v<Number>) {
    if (!form.empty()) {
      if (form.front() != '.' || form.back() != 'f') refuse(form);
      const int precision = std::stoi(std::string(form.substr(1)));
      return {text, static_cast<std::size_t>(
                        std::snprintf(text, sizeof text, "%.*f", precision, static_cast<double>(number)))};
    }
    return {text, std::to_chars(text, text + sizeof text, number).ptr};
  } else {
    if (!form.empty() && form != "x" && form != "#x") refuse(form);
    const std::string digits(text, std::to_chars(text, text + sizeof text, number, form.empty() ? 10 : 16).ptr);
    return form == "#x" ? "0x" + digits : digits;
  }
}

template <class T>
std::string text_of(const T& value, std::string_view form) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, char>) {
    return std::string(1, value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return number_text(value, form);
  } else if constexpr (std::is_convertible_v<T, const void*> && !std::is_convertible_v<T, std::string_view>) {
    return number_text(reinterpret_cast<std::uintptr_t>(value), "#x");
  } else {
    if (!form.empty()) refuse(form);
    return std::string(std::string_view(value));
  }
}
template <class Range>
std::string text_of(const Joined<Range>& joined, std::string_view form) {
  std::string text;
  for (const auto& item : joined.range) {
    if (!text.empty()) text += joined.separator;
    text += text_of(item, form);
  }
  return text;
}

// Up to the next field, {{ and }} made one brace; the field's form goes to `form`. Whether there is a field.
inline bool copy_to_field(std::string_view& format, std::string& text, std::string_view& form) {
  while (!format.empty()) {
    const char c = format.front();
    format.remove_prefix(1);
    if ((c == '{' || c == '}') && !format.empty() && format.front() == c) {
      format.remove_prefix(1);
    } else if (c == '{') {
      const std::size_t end = format.find('}');
      if (end == std::string_view::npos) refuse(format);
      form = format.substr(0, end);
      format.remove_prefix(end + 1);
      if (!form.empty() && form.front() != ':') refuse(form);
      if (!form.empty()) form.remove_prefix(1);
      return true;
    }
    text += c;
  }
  return false;
}

}  // namespace without_library

template <class... Arguments>
std::string format(std::string_view format, const Arguments&... arguments) {
  std::string text;
  std::string_view form;
  [[maybe_unused]] const auto add = [&](const auto& argument) {
    if (!without_library::copy_to_field(format, text, form)) without_library::refuse("too few fields");
    text += without_library::text_of(argument, form);
  };
  (add(arguments), ...);
  if (without_library::copy_to_field(format, text, form)) without_library::refuse("too many fields");
  return text;
}

}  // namespace fmt
