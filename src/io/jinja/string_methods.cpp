// Methods of str that change or describe characters.

#include <algorithm>

#include "io/jinja/format.h"
#include "io/jinja/iteration.h"
#include "io/jinja/letter_case.h"
#include "io/jinja/methods.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

template <std::string (*map)(std::string_view)>
Value mapped_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  bind_arguments("str method", arguments, {});
  runtime.budget().step(self.text().size() / 8);
  return make_string_like(runtime, self, map(self.text()));
}

template <Side side>
Value stripped(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto values = bind_arguments("strip", arguments, {"chars"});
  runtime.budget().step(self.weight());
  if (values[0] == nullptr || values[0]->is_none())
    return make_string_like(runtime, self, std::string(strip_space(self.text(), side)));
  const std::string& set = text_argument("strip", *values[0]);
  runtime.budget().step(set.size());
  return make_string_like(runtime, self, std::string(strip_set(self.text(), set, side)));
}

// True if the text is not empty and `claim` is true for all its characters.
template <bool (*claim)(char32_t)>
Value all_are(Runtime& runtime, const Value& self, const Arguments& arguments) {
  bind_arguments("str method", arguments, {});
  const std::string& text = self.text();
  runtime.budget().step(text.size() / 8);
  for (std::size_t position = 0; position < text.size();) {
    const Character character = character_at(text, position);
    if (!claim(character.code)) return Value::boolean(false);
    position += character.bytes;
  }
  return Value::boolean(!text.empty());
}

bool is_alphanumeric(char32_t code) { return is_word(code) && code != '_'; }
bool is_ascii_character(char32_t code) { return code < 0x80; }

Value is_ascii_text(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Value::boolean(self.text().empty() || is_true(all_are<is_ascii_character>(runtime, self, arguments)));
}

Value is_printable_text(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Value::boolean(self.text().empty() || is_true(all_are<is_printable>(runtime, self, arguments)));
}

Value is_identifier_text(Runtime&, const Value& self, const Arguments& arguments) {
  bind_arguments("isidentifier", arguments, {});
  return Value::boolean(is_identifier(self.text()));
}

template <bool (*wanted)(char32_t), bool (*unwanted)(char32_t)>
Value all_cased_are(Runtime& runtime, const Value& self, const Arguments& arguments) {
  bind_arguments("str method", arguments, {});
  const std::string& text = self.text();
  runtime.budget().step(text.size() / 8);
  bool found = false;
  for (std::size_t position = 0; position < text.size();) {
    const Character character = character_at(text, position);
    if (unwanted(character.code)) return Value::boolean(false);
    found = found || wanted(character.code);
    position += character.bytes;
  }
  return Value::boolean(found);
}

Value is_title(Runtime& runtime, const Value& self, const Arguments& arguments) {
  bind_arguments("istitle", arguments, {});
  const std::string& text = self.text();
  runtime.budget().step(text.size() / 8);
  bool inside = false;
  bool found = false;
  for (std::size_t position = 0; position < text.size();) {
    const Character character = character_at(text, position);
    if (is_upper(character.code) ? inside : is_lower(character.code) && !inside) return Value::boolean(false);
    inside = is_upper(character.code) || is_lower(character.code);
    found = found || inside;
    position += character.bytes;
  }
  return Value::boolean(found);
}

Value pad(Runtime& runtime, const Value& self, const Arguments& arguments, bool left, bool right) {
  const auto values = bind_arguments("center", arguments, {"width", "fillchar"}, 1);
  const std::string fill = values[1] == nullptr ? " " : text_argument("center", *values[1]);
  if (character_count(fill) != 1) fail_template("The fill character must be exactly one character long");
  const auto length = static_cast<std::int64_t>(character_count(self.text()));
  const std::int64_t width = integer_argument("center", values[0], 0);
  if (width <= length) return self;
  runtime.budget().check_text(static_cast<std::uint64_t>(width));
  const std::int64_t missing = width - length;
  // Like Python: of an odd number of fill characters, the extra one comes first only if the width is odd.
  const std::int64_t before = left && right ? missing / 2 + (missing & width & 1) : (left ? missing : 0);
  std::string text;
  for (std::int64_t i = 0; i < before; ++i) text += fill;
  text += self.text();
  for (std::int64_t i = before; i < missing; ++i) text += fill;
  return make_string_like(runtime, self, std::move(text));
}

Value center_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return pad(runtime, self, arguments, true, true);
}

Value align_left(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return pad(runtime, self, arguments, false, true);
}

Value align_right(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return pad(runtime, self, arguments, true, false);
}

Value fill_with_zeros(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto values = bind_arguments("zfill", arguments, {"width"}, 1);
  const auto length = static_cast<std::int64_t>(character_count(self.text()));
  const std::int64_t width = integer_argument("zfill", values[0], 0);
  if (width <= length) return self;
  const std::int64_t missing = width - length;
  runtime.budget().check_text(static_cast<std::uint64_t>(missing));
  std::string text = self.text();
  const bool has_sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  text.insert(has_sign ? 1 : 0, static_cast<std::size_t>(missing), '0');
  return make_string_like(runtime, self, std::move(text));
}

constexpr Method kStringMethods[] = {
    {"capitalize", mapped_method<capitalize>},
    {"center", center_method},
    {"format", format_braces},
    {"isalnum", all_are<is_alphanumeric>},
    {"isalpha", all_are<is_alphabetic>},
    {"isascii", is_ascii_text},
    {"isdecimal", all_are<is_decimal>},
    {"isdigit", all_are<is_digit>},
    {"isidentifier", is_identifier_text},
    {"islower", all_cased_are<is_lower, is_upper>},
    {"isprintable", is_printable_text},
    {"isspace", all_are<is_space>},
    {"istitle", is_title},
    {"isupper", all_cased_are<is_upper, is_lower>},
    {"ljust", align_left},
    {"lower", mapped_method<to_lower>},
    {"lstrip", stripped<Side::left>},
    {"rjust", align_right},
    {"rstrip", stripped<Side::right>},
    {"strip", stripped<Side::both>},
    {"swapcase", mapped_method<swap_case>},
    {"title", mapped_method<to_title>},
    {"upper", mapped_method<to_upper>},
    {"zfill", fill_with_zeros},
};

}  // namespace

// A string that is derived from markup is markup too.
Value make_string_like(Runtime& runtime, const Value& self, std::string text) {
  return make_string(runtime.budget(), std::move(text), self.is_markup());
}

const std::string& text_argument(std::string_view callee, const Value& argument) {
  if (!argument.is_string()) fail_template("{}() needs a string, but got {}", callee, type_name(argument));
  return argument.text();
}

std::span<const Method> string_methods() { return kStringMethods; }

}  // namespace weft::jinja
