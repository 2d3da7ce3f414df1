// Methods of str that search for one text in another: find, split, replace and similar ones.

#include <algorithm>

#include "base/markup.h"
#include "io/jinja/iteration.h"
#include "io/jinja/methods.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

Value string_list(Runtime& runtime, const Value& self, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  runtime.budget().allocate(parts.size() * (sizeof(Value) + sizeof(std::string)));
  for (const std::string_view part : parts) items.push_back(make_string_like(runtime, self, std::string(part)));
  return make_list(runtime.budget(), std::move(items));
}

// The part of `text` between two character positions, with the rules of Python's slices, and its first position.
struct Window {
  std::string_view text;
  std::int64_t begin;  // in characters
};

std::optional<Window> window(Runtime& runtime, std::string_view text, const Value* start, const Value* stop) {
  if (start == nullptr && stop == nullptr) return Window{text, 0};
  runtime.budget().step(1 + text.size() / 16);
  const auto characters = static_cast<std::int64_t>(character_count(text));
  const auto place = [&](const Value* bound, std::int64_t otherwise) {
    std::int64_t position = integer_argument("str method", bound, otherwise);
    if (position < 0) position = position < -characters ? 0 : position + characters;
    return position;
  };
  const std::int64_t begin = place(start, 0);
  const std::int64_t end = std::min(place(stop, characters), characters);
  if (begin > end) return std::nullopt;
  std::size_t first = 0;
  for (std::int64_t i = 0; i < begin; ++i) first += character_at(text, first).bytes;
  std::size_t last = first;
  for (std::int64_t i = begin; i < end; ++i) last += character_at(text, last).bytes;
  return Window{text.substr(first, last - first), begin};
}

// `ending`: whether the needle must be at the end of the window or at its beginning.
template <bool ending>
Value has_affix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  constexpr std::string_view kName = ending ? "endswith" : "startswith";
  const auto values = bind_arguments(kName, arguments, {"affix", "start", "end"}, 1);
  const auto matches = [&](const Value& affix) {
    const std::string& wanted = text_argument(kName, affix);
    const auto part = window(runtime, self.text(), values[1], values[2]);
    runtime.budget().step(1 + wanted.size() / 64);
    return part && (ending ? part->text.ends_with(wanted) : part->text.starts_with(wanted));
  };
  if (!values[0]->is(Kind::tuple)) return Value::boolean(matches(*values[0]));
  return Value::boolean(std::any_of(values[0]->items().begin(), values[0]->items().end(), matches));
}

// Returns the character position of the first or last occurrence, or -1 if there is none.
template <bool last>
std::int64_t locate(Runtime& runtime, std::string_view callee, const Value& self, const Arguments& arguments) {
  const auto values = bind_arguments(callee, arguments, {"sub", "start", "end"}, 1);
  const std::string& wanted = text_argument(callee, *values[0]);
  const auto part = window(runtime, self.text(), values[1], values[2]);
  if (!part) return -1;
  runtime.budget().search(part->text.size(), wanted.size());
  const std::size_t found = last ? part->text.rfind(wanted) : part->text.find(wanted);
  if (found == std::string_view::npos) return -1;
  return part->begin + static_cast<std::int64_t>(character_count(part->text.substr(0, found)));
}

template <bool last>
Value find(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Value::integer(locate<last>(runtime, "find", self, arguments));
}

template <bool last>
Value index_in_text(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const std::int64_t found = locate<last>(runtime, "index", self, arguments);
  if (found < 0) fail_template("substring not found");
  return Value::integer(found);
}

Value count_in_text(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto values = bind_arguments("count", arguments, {"sub", "start", "end"}, 1);
  const std::string& wanted = text_argument("count", *values[0]);
  const auto part = window(runtime, self.text(), values[1], values[2]);
  if (!part) return Value::integer(0);
  runtime.budget().search(part->text.size(), wanted.size());
  if (wanted.empty()) return Value::integer(static_cast<std::int64_t>(character_count(part->text)) + 1);
  std::int64_t found = 0;
  for (std::size_t position = part->text.find(wanted); position != std::string_view::npos; ++found)
    position = part->text.find(wanted, position + wanted.size());
  return Value::integer(found);
}

template <bool ending>
Value remove_affix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto values = bind_arguments("removeprefix", arguments, {"affix"}, 1);
  const std::string& affix = text_argument("removeprefix", *values[0]);
  std::string_view text = self.text();
  if (ending && text.ends_with(affix)) text.remove_suffix(affix.size());
  if (!ending && text.starts_with(affix)) text.remove_prefix(affix.size());
  return make_string_like(runtime, self, std::string(text));
}

Value replace_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto values = bind_arguments("replace", arguments, {"old", "new", "count"}, 2);
  const std::string with = text_argument("replace", *values[1]);
  return make_string_like(runtime, self,
                          replace_text(runtime.budget(), self.text(), text_argument("replace", *values[0]),
                                       self.is_markup() && !values[1]->is_markup() ? escape_markup(with) : with,
                                       integer_argument("replace", values[2], -1)));
}

Value join_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto values = bind_arguments("join", arguments, {"iterable"}, 1);
  std::string text;
  bool first = true;
  const auto items = iterate(runtime.budget(), *values[0]);
  for (const Value& item : *items) {
    if (!item.is_string()) fail_template("join() needs strings, but got {}", type_name(item));
    const std::string part = self.is_markup() && !item.is_markup() ? escape_markup(item.text()) : item.text();
    runtime.budget().check_text(text.size() + self.text().size() + part.size());
    if (!first) text += self.text();
    text += part;
    first = false;
  }
  return make_string_like(runtime, self, std::move(text));
}

Value split_into_lines(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto values = bind_arguments("splitlines", arguments, {"keepends"});
  runtime.budget().step(self.text().size() / 8);
  return string_list(runtime, self, split_lines(self.text(), values[0] != nullptr && is_true(*values[0])));
}

std::vector<std::string_view> split_at_space(std::string_view text, std::int64_t limit) {
  std::vector<std::string_view> parts;
  text = strip_space(text, Side::left);
  while (!text.empty()) {
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit) {
      parts.push_back(text);
      break;
    }
    std::size_t end = 0;
    while (end < text.size() && !is_space(character_at(text, end).code)) end += character_at(text, end).bytes;
    parts.push_back(text.substr(0, end));
    text = strip_space(text.substr(end), Side::left);
  }
  return parts;
}

std::vector<std::string_view> split_at_space_from_right(std::string_view text, std::int64_t limit) {
  auto words = split_at_space(text, -1);
  if (limit < 0 || static_cast<std::int64_t>(words.size()) <= limit) return words;
  // The text before the last `limit` words is not split; only the white space at its end is removed.
  const std::size_t kept = words.size() - static_cast<std::size_t>(limit);
  const char* begin = text.data();
  const std::string_view last = words[kept - 1];
  std::vector<std::string_view> parts{
      std::string_view(begin, static_cast<std::size_t>(last.data() + last.size() - begin))};
  parts.insert(parts.end(), words.begin() + static_cast<std::ptrdiff_t>(kept), words.end());
  return parts;
}

template <bool from_right>
Value split(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto values = bind_arguments("split", arguments, {"sep", "maxsplit"});
  const std::int64_t limit = integer_argument("split", values[1], -1);
  std::string_view text = self.text();
  runtime.budget().step(text.size() / 8);
  if (values[0] == nullptr || values[0]->is_none())
    return string_list(runtime, self,
                       from_right ? split_at_space_from_right(text, limit) : split_at_space(text, limit));
  const std::string& separator = text_argument("split", *values[0]);
  if (separator.empty()) fail_template("empty separator");
  runtime.budget().search(text.size(), separator.size());
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) < limit) {
    const std::size_t found = from_right ? text.rfind(separator) : text.find(separator);
    if (found == std::string_view::npos) break;
    parts.push_back(from_right ? text.substr(found + separator.size()) : text.substr(0, found));
    text = from_right ? text.substr(0, found) : text.substr(found + separator.size());
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return string_list(runtime, self, parts);
}

template <bool from_right>
Value partition(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto values = bind_arguments("partition", arguments, {"sep"}, 1);
  const std::string& separator = text_argument("partition", *values[0]);
  if (separator.empty()) fail_template("empty separator");
  const std::string_view text = self.text();
  runtime.budget().search(text.size(), separator.size());
  const std::size_t found = from_right ? text.rfind(separator) : text.find(separator);
  const bool missing = found == std::string_view::npos;
  const std::string_view head = missing ? (from_right ? "" : text) : text.substr(0, found);
  const std::string_view tail = missing ? (from_right ? text : "") : text.substr(found + separator.size());
  std::vector<Value> items;
  const std::string_view middle = missing ? std::string_view() : std::string_view(separator);
  for (const std::string_view part : {head, middle, tail})
    items.push_back(make_string_like(runtime, self, std::string(part)));
  return make_sequence(runtime.budget(), Kind::tuple, std::move(items));
}

constexpr Method kSearchMethods[] = {
    {"count", count_in_text},
    {"endswith", has_affix<true>},
    {"find", find<false>},
    {"index", index_in_text<false>},
    {"join", join_method},
    {"partition", partition<false>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", replace_method},
    {"rfind", find<true>},
    {"rindex", index_in_text<true>},
    {"rpartition", partition<true>},
    {"rsplit", split<true>},
    {"split", split<false>},
    {"splitlines", split_into_lines},
    {"startswith", has_affix<false>},
};

}  // namespace

std::string replace_text(Budget& budget, std::string_view text, std::string_view old, std::string_view with,
                         std::int64_t limit) {
  budget.search(text.size(), old.size());
  std::string out;
  std::size_t position = 0;
  for (std::int64_t done = 0; limit < 0 || done < limit; ++done) {
    // An empty text matches before each character and at the end.
    const std::size_t found = old.empty() ? position : text.find(old, position);
    if (found == std::string_view::npos) break;
    budget.check_text(out.size() + (found - position) + with.size());
    out += text.substr(position, found - position);
    out += with;
    position = found + old.size();
    if (!old.empty()) continue;
    if (position == text.size()) return out;
    const std::size_t bytes = character_at(text, position).bytes;
    out += text.substr(position, bytes);
    position += bytes;
  }
  budget.check_text(out.size() + text.size() - position);
  out += text.substr(position);
  return out;
}

std::span<const Method> string_search_methods() { return kSearchMethods; }

}  // namespace weft::jinja
