#include "options/option_value.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "base/utf8.h"
#include "options/custom_ops.h"

namespace weft {
namespace {

constexpr std::size_t kMostItems = 4096;
constexpr std::size_t kLongestName = 256, kLongestPath = 4096;

bool is_name(std::string_view text) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; };
  return !text.empty() && text.size() <= kLongestName && std::all_of(text.begin(), text.end(), allowed);
}

bool parse_flag(std::string_view text, std::string_view name) {
  const std::string word = to_lower_ascii(text);
  if (word.empty() || word == "true" || word == "1" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "0" || word == "no" || word == "off") return false;
  fail_user("[{}] wanted true or false, but is {}", name, quote(text));
}

std::int64_t parse_count(std::string_view text, const OptionRow& row) {
  const std::int64_t count = human_integer(text, row.name);
  const OptionLimits& limits = row.limits;
  if (limits.check != OptionCheck::between || (count >= limits.least && count <= limits.most)) return count;
  if (limits.least == limits.most) fail_user("[{}] wanted {}, but is {}", row.name, limits.least, count);
  fail_user("[{}] wanted a whole number from {} to {}, but is {}", row.name, limits.least, limits.most, count);
}

std::string parse_word(std::string_view text, const OptionRow& row) {
  const std::string wanted = to_lower_ascii(text);
  std::vector<std::string> canonical;
  for (const std::string& spellings : split_text(row.limits.words, ' ')) {
    const std::vector<std::string> names = split_text(spellings, '|');
    for (const std::string& name : names) {
      if (to_lower_ascii(name) == wanted) return names.front();
    }
    canonical.push_back(names.front());
  }
  fail_user("[{}] wanted one of {}, but is {}{}", row.name, fmt::join(canonical, ", "), quote(text),
            suggestion(text, canonical));
}

void check_device_name(std::string_view text, std::string_view name) {
  bool valid = text == "cpu" || text == "cuda" || text == "fake-cuda";
  for (const std::string_view indexed : {"cuda:", "fake-cuda:"}) {
    if (!text.starts_with(indexed)) continue;
    const std::string_view index = text.substr(indexed.size());
    const bool digits = std::all_of(index.begin(), index.end(), [](char c) { return c >= '0' && c <= '9'; });
    valid = digits && !index.empty() && index.size() <= 3;
  }
  USER_CHECK(valid, "[{}] wanted cpu, cuda, cuda:N, fake-cuda or fake-cuda:N, but is {}", name, quote(text));
}

std::string parse_text(std::string_view text, const OptionRow& row) {
  if (row.limits.check == OptionCheck::one_of) return parse_word(text, row);
  if (row.limits.check == OptionCheck::device_name) check_device_name(text, row.name);
  USER_CHECK(text.find('\0') == std::string_view::npos, "[{}] holds a null byte", row.name);
  USER_CHECK(!first_invalid_utf8(text), "[{}] is not UTF-8: {}", row.name, quote(text));
  return std::string(text);
}

// A shell removes the quotes of ["none"].
bool is_unquoted_list(std::string_view text) {
  if (text.size() < 3 || text.back() != ']' || text.find_first_of("[]\"{}", 1) != text.size() - 1) return false;
  return parse_json(text).is_discarded();
}

constexpr OptionLimits kSizeLimits{.check = OptionCheck::between, .least = 1, .most = 1 << 20};

// NAME=PATH, or the object that vLLM takes for it.
std::string parse_named_path(const std::string& item, const OptionRow& row) {
  const auto is_named_path = [](std::string_view text) {
    const std::size_t at = text.find('=');
    return at != std::string_view::npos && at > 0 && at + 1 < text.size();
  };
  std::string named = item;
  if (item.starts_with('{')) {
    const Json object = parse_json(item);
    const auto text = [&](const char* key) {
      const bool has = object.is_object() && object.contains(key) && object.at(key).is_string();
      return has ? object.at(key).get<std::string>() : std::string();
    };
    named = text("name").find('=') == std::string::npos ? text("name") + "=" + text("path") : "";
    for (const auto& [key, value] : object.items())
      USER_CHECK(key == "name" || key == "path" || key == "base_model_name",
                 "[{}] wanted an object with name and path, but it has {}", row.name, quote(key));
  }
  USER_CHECK(is_named_path(named), "[{}] wanted NAME=PATH or {{\"name\": NAME, \"path\": PATH}}, but is {}", row.name,
             quote(item));
  return named;
}

Words parse_words(const std::vector<std::string>& items, const OptionRow& row) {
  Words words;
  for (const std::string& item : items) {
    USER_CHECK(!item.empty() && item.size() <= (grows(row) ? kLongestPath : kLongestName) &&
                   item.find('\0') == std::string::npos,
               "[{}] wanted a list of names, but one is {}", row.name, quote(item));
    USER_CHECK(!first_invalid_utf8(item), "[{}] is not UTF-8: {}", row.name, quote(item));
    if (row.limits.check == OptionCheck::size_words && item != "cudagraph_capture_sizes") {
      OptionRow sizes = row;
      sizes.limits = kSizeLimits;
      words.push_back(fmt::format("{}", parse_count(item, sizes)));
    } else if (row.limits.check == OptionCheck::named_paths) {
      words.push_back(parse_named_path(item, row));
    } else {
      words.push_back(item);
    }
  }
  if (row.limits.check == OptionCheck::custom_op_words) check_custom_ops(words);
  return words;
}

}  // namespace

std::vector<std::string> text_items(std::string_view text, std::string_view what) {
  if (trim(text).empty()) return {};
  std::vector<std::string> items;
  if (!trim(text).starts_with('[')) {
    items = split_text(text, ',');
  } else if (is_unquoted_list(trim(text))) {
    items = split_text(trim(text).substr(1, trim(text).size() - 2), ',');
  } else {
    const Json list = parse_json(text);
    USER_CHECK(list.is_array(), "[{}] wanted a list, but is {}", what, quote(text));
    for (const Json& item : list) {
      const bool is_item = item.is_string() || item.is_number_integer();
      USER_CHECK(is_item, "[{}] wanted a list of names or whole numbers, but is {}", what, quote(text));
      items.push_back(item.is_string() ? item.get<std::string>() : json_text(item));
    }
  }
  USER_CHECK(items.size() <= kMostItems, "[{}] wanted at most {} items, but has {}", what, kMostItems, items.size());
  return items;
}

std::vector<std::string> text_items(std::string_view text, const OptionRow& row) {
  const std::string_view trimmed = trim(text);
  if (row.limits.check != OptionCheck::named_paths) return text_items(text, row.name);
  if (trimmed.starts_with('{')) return {std::string(trimmed)};
  const Json list = trimmed.starts_with('[') ? parse_json(trimmed) : Json();
  if (!list.is_array()) return text_items(text, row.name);
  std::vector<std::string> items;
  for (const Json& item : list) items.push_back(item.is_string() ? item.get<std::string>() : json_text(item));
  return items;
}

bool grows(const OptionRow& row) {
  const OptionCheck check = row.limits.check;
  return check == OptionCheck::repeatable || check == OptionCheck::scaled_paths || check == OptionCheck::named_paths;
}

void assign_priority(Options& options, std::string_view op, const std::vector<std::string>& items) {
  USER_CHECK(is_name(op), "[ir-op-priority] wanted the name of an op, but is {}", quote(op));
  USER_CHECK(!items.empty(), "[ir-op-priority.{}] wanted at least one provider, but is empty", op);
  for (auto item = items.begin(); item != items.end(); ++item) {
    USER_CHECK(is_name(*item), "[ir-op-priority.{}] wanted the name of a provider, but is {}", op, quote(*item));
    USER_CHECK(std::find(items.begin(), item, *item) == item, "[ir-op-priority.{}] names {} twice", op, *item);
  }
  options.ir_op_priority[std::string(op)] = items;
}

void assign_option(Options& options, const OptionRow& row, std::string_view text) {
  std::visit(Overloaded{
                 [&](bool Options::*member) { options.*member = parse_flag(text, row.name); },
                 [&](OptionalFlag Options::*member) {
                   const std::string word = to_lower_ascii(text);
                   options.*member = word == "none" || word == "auto" ? OptionalFlag() : parse_flag(text, row.name);
                 },
                 [&](std::int64_t Options::*member) {
                   const std::int64_t automatic = Options().*member;
                   const bool has_automatic = automatic < row.limits.least;
                   const bool asks_for_it = to_lower_ascii(text) == "auto" || text == "-1";
                   options.*member = has_automatic && asks_for_it ? automatic : parse_count(text, row);
                 },
                 [&](std::string Options::*member) { options.*member = parse_text(text, row); },
                 [&](Counts Options::*) { assign_option(options, row, text_items(text, row.name)); },
                 [&](Words Options::*) { assign_option(options, row, text_items(text, row)); },
                 [&](Priorities Options::*) { CHECK(false, "[{}] is set per op", row.name); },
             },
             row.member);
}

void assign_option(Options& options, const OptionRow& row, const std::vector<std::string>& items) {
  USER_CHECK(items.size() <= kMostItems, "[{}] wanted at most {} items, but has {}", row.name, kMostItems,
             items.size());
  if (const auto* counts = std::get_if<Counts Options::*>(&row.member)) {
    Counts parsed;
    for (const std::string& item : items) parsed.push_back(parse_count(item, row));
    options.** counts = std::move(parsed);
  } else if (const auto* words = std::get_if<Words Options::*>(&row.member)) {
    options.** words = parse_words(items, row);
  } else {
    fail_user("[{}] wanted one value, but is a list of {}", row.name, items.size());
  }
}

std::vector<std::string> option_items(const Options& options, const OptionRow& row) {
  std::vector<std::string> items;
  if (const auto* words = std::get_if<Words Options::*>(&row.member)) items = options.**words;
  if (const auto* counts = std::get_if<Counts Options::*>(&row.member))
    for (const std::int64_t count : options.**counts) items.push_back(fmt::format("{}", count));
  return items;
}

void reset_option(Options& options, const OptionRow& row) {
  std::visit([&](auto member) { options.*member = Options().*member; }, row.member);
}

}  // namespace weft
