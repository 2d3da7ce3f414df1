// Filters that return text.

#include <algorithm>

#include "base/markup.h"
#include "io/jinja/filters.h"
#include "io/jinja/format.h"
#include "io/jinja/iteration.h"
#include "io/jinja/json.h"
#include "io/jinja/letter_case.h"
#include "io/jinja/methods.h"
#include "io/jinja/printer.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

// Converts the input of a text filter: markup and strings are unchanged, other values become str().
Value soft_string(Runtime& runtime, const Value& value) {
  return value.is_string() ? value : Value::string(to_text(runtime.budget(), value));
}

template <std::string (*map)(std::string_view)>
Value mapped_filter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind_arguments("filter", arguments, {});
  const Value text = soft_string(runtime, input);
  runtime.budget().step(text.text().size() / 8);
  return make_string_like(runtime, text, map(text.text()));
}

// Converts the first letter after each space, hyphen or opening bracket to upper case and the rest to lower case.
std::string title(std::string_view text) {
  std::string out;
  std::size_t word = 0;
  for (std::size_t position = 0; position < text.size();) {
    const Character character = character_at(text, position);
    const std::string_view bytes = text.substr(position, character.bytes);
    const bool separates = is_space(character.code) || std::string_view("-({[<").find(bytes) != std::string_view::npos;
    if (separates) {
      out += upper_first(text.substr(word, position - word));
      out += bytes;
      word = position + character.bytes;
    }
    position += character.bytes;
  }
  return out + upper_first(text.substr(word));
}

Value trim(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("trim", arguments, {"chars"});
  const Value text = soft_string(runtime, input);
  runtime.budget().step(text.weight());
  const bool has_set = values[0] != nullptr && !values[0]->is_none();
  return make_string_like(runtime, text,
                          std::string(has_set ? strip_set(text.text(), text_argument("trim", *values[0]), Side::both)
                                              : strip_space(text.text(), Side::both)));
}

Value center_filter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("center", arguments, {"width"});
  const Value text = soft_string(runtime, input);
  const Value width = Value::integer(integer_argument("center", values[0], 80));
  return find_method(text, "center")->call(runtime, text, {{width}, {}});
}

Value escape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind_arguments("escape", arguments, {});
  if (input.is_markup()) return input;
  return make_string(runtime.budget(), escape_markup(to_text(runtime.budget(), input)), true);
}

Value force_escape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind_arguments("forceescape", arguments, {});
  return make_string(runtime.budget(), escape_markup(to_text(runtime.budget(), input)), true);
}

Value safe(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind_arguments("safe", arguments, {});
  return make_string(runtime.budget(), to_text(runtime.budget(), input), true);
}

Value string(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind_arguments("string", arguments, {});
  return soft_string(runtime, input);
}

Value format(Runtime& runtime, const Value& input, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    fail_template("format() cannot take positional and named arguments at the same time");
  Value values = make_sequence(runtime.budget(), Kind::tuple, arguments.positional);
  if (!arguments.named.empty()) {
    Dict named;
    for (const auto& [name, value] : arguments.named) named.set(Value::string(name), value);
    values = make_dict(runtime.budget(), std::move(named));
  }
  return format_percent(runtime.budget(), soft_string(runtime, input), values);
}

Value replace_filter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("replace", arguments, {"old", "new", "count"}, 2);
  return make_string(
      runtime.budget(),
      replace_text(runtime.budget(), to_text(runtime.budget(), input), to_text(runtime.budget(), *values[0]),
                   to_text(runtime.budget(), *values[1]), integer_argument("replace", values[2], -1)));
}

std::string indentation(const Value* width) {
  if (width != nullptr && width->is_string()) return width->text();
  const std::int64_t count = integer_argument("indent", width, 4);
  constexpr std::int64_t kMaxIndent = 10'000;
  if (count > kMaxIndent) fail_template("an indentation beyond {}", kMaxIndent);
  return std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, count)), ' ');
}

Value indent(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("indent", arguments, {"width", "first", "blank"});
  const std::string space = indentation(values[0]);
  const bool first = values[1] != nullptr && is_true(*values[1]);
  const bool blank = values[2] != nullptr && is_true(*values[2]);
  if (!input.is_string()) fail_template("indent() needs a string, but got {}", type_name(input));
  const std::string text = input.text() + "\n";
  runtime.budget().step(text.size() / 8);
  Printer out(runtime.budget());
  bool is_first = true;
  for (const std::string_view line : split_lines(text, false)) {
    if (!is_first) out.append("\n");
    // With `blank`, empty lines are indented too.
    if (is_first ? first : blank || !line.empty()) out.append(space);
    out.append(line);
    is_first = false;
  }
  return Value::string(out.take(), input.is_markup());
}

// The first `count` characters.
std::string_view first_characters(std::string_view text, std::int64_t count) {
  std::size_t end = 0;
  for (std::int64_t i = 0; i < count && end < text.size(); ++i) end += character_at(text, end).bytes;
  return text.substr(0, end);
}

Value truncate(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto values = bind_arguments("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const std::int64_t wanted = integer_argument("truncate", values[0], 255);
  const std::string end = values[2] == nullptr ? "..." : text_argument("truncate", *values[2]);
  const std::int64_t leeway = integer_argument("truncate", values[3], 5);
  const auto end_length = static_cast<std::int64_t>(character_count(end));
  if (wanted < end_length) fail_template("truncate() needs a length of at least {}", end_length);
  if (leeway < 0) fail_template("truncate() needs a leeway that is not negative");
  const std::int64_t characters = length(runtime.budget(), input);
  if (characters <= wanted || characters - wanted <= leeway) return input;
  if (!input.is_string()) fail_template("truncate() needs a string, but got {}", type_name(input));
  std::string_view kept = first_characters(input.text(), wanted - end_length);
  if (values[1] == nullptr || !is_true(*values[1])) kept = kept.substr(0, std::min(kept.rfind(' '), kept.size()));
  return make_string_like(runtime, input, std::string(kept) + end);
}

Value count_words(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind_arguments("wordcount", arguments, {});
  const std::string text = to_text(runtime.budget(), input);
  std::int64_t count = 0;
  bool inside = false;
  for (std::size_t position = 0; position < text.size();) {
    const Character character = character_at(text, position);
    if (is_word(character.code) && !inside) ++count;
    inside = is_word(character.code);
    position += character.bytes;
  }
  return Value::integer(count);
}

constexpr Filter kTextFilters[] = {
    {"capitalize", mapped_filter<capitalize>},
    {"center", center_filter},
    {"e", escape},
    {"escape", escape},
    {"forceescape", force_escape},
    {"format", format},
    {"indent", indent},
    {"lower", mapped_filter<to_lower>},
    {"replace", replace_filter},
    {"safe", safe},
    {"string", string},
    {"title", mapped_filter<title>},
    {"tojson", json_filter},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", mapped_filter<to_upper>},
    {"wordcount", count_words},
};

}  // namespace

std::span<const Filter> text_filters() { return kTextFilters; }

}  // namespace weft::jinja
