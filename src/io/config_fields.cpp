#include "io/config_fields.h"

#include <cmath>
#include <utility>

#include "base/text.h"

namespace weft {
namespace {

constexpr JsonLimits kLimits = {.most_bytes = 16 << 20,
                                .deepest = 64};  // a limit of the depth, since printing a value recurses

std::int64_t to_integer(const Json& value, const std::string& name, const std::string& where) {
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= INT64_MAX : value.is_number_integer();
  USER_CHECK(fits, "[{}] {} must be an integer, but is {}", where, name, shown_json(value));
  return value.get<std::int64_t>();
}

// The text with each Infinity outside of strings as the object that newer versions of transformers write for it. JSON
// has no such number, but Python reads and writes it, and published files have it among the limits of steps.
std::string without_infinities(std::string_view text) {
  constexpr std::string_view kInfinity = "Infinity", kObject = R"({"__float__": "Infinity"})";
  std::string result;
  bool is_in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_in_string && text.substr(at, kInfinity.size()) == kInfinity) {
      result += kObject;
      at += kInfinity.size() - 1;
      continue;
    }
    if (text[at] == '"') is_in_string = !is_in_string;
    result += text[at];
    if (text[at] == '\\' && is_in_string && at + 1 < text.size()) result += text[++at];
  }
  return result;
}

}  // namespace

std::string shown_json(const Json& value) {
  constexpr std::size_t kLongest = 80;
  auto text = json_ascii(value);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

Json parse_config_json(std::string_view text, const std::string& where) {
  Json json = parse_json(without_infinities(text), where, kLimits);
  USER_CHECK(json.is_object(), "[{}] wanted a JSON object, but is {}", where, shown_json(json));
  return json;
}

JsonFields::JsonFields(const Json& object, std::string where, std::string prefix)
    : object_(&object), where_(std::move(where)), prefix_(std::move(prefix)) {
  USER_CHECK(object.is_object(), "[{}] {} must be an object, but is {}", where_,
             prefix_.empty() ? "the text" : prefix_.substr(0, prefix_.size() - 1), shown_json(object));
}

JsonFields::JsonFields(const Json& object, std::string where, std::span<const KeyName> names)
    : JsonFields(object, std::move(where)) {
  names_ = names;
}

std::string_view JsonFields::spelling(std::string_view key) const {
  for (const KeyName& name : names_) {
    if (name.usual != key) continue;
    if (const auto at = object_->find(name.own); at != object_->end() && !at->is_null()) return name.own;
  }
  return key;
}

bool JsonFields::is_null(std::string_view key) const {
  const auto at = object_->find(spelling(key));
  return at != object_->end() && at->is_null();
}

const Json* JsonFields::value(std::string_view key) const {
  const auto at = object_->find(spelling(key));
  return at == object_->end() || at->is_null() ? nullptr : &*at;
}

std::vector<std::string> JsonFields::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, its_value] : object_->items())
    if (!its_value.is_null()) keys.push_back(key);
  return keys;
}

std::optional<std::int64_t> JsonFields::find_integer(std::string_view key) const {
  const auto* found = value(key);
  if (found == nullptr) return std::nullopt;
  return to_integer(*found, name(key), where_);
}

std::optional<double> JsonFields::find_real(std::string_view key) const {
  const auto* found = value(key);
  if (found == nullptr) return std::nullopt;
  USER_CHECK(found->is_number() && std::isfinite(found->get<double>()), "[{}] {} must be a number, but is {}", where_,
             name(key), shown_json(*found));
  return found->get<double>();
}

std::optional<bool> JsonFields::find_boolean(std::string_view key) const {
  const auto* found = value(key);
  if (found == nullptr) return std::nullopt;
  USER_CHECK(found->is_boolean(), "[{}] {} must be true or false, but is {}", where_, name(key), shown_json(*found));
  return found->get<bool>();
}

std::optional<std::string> JsonFields::find_text(std::string_view key) const {
  const auto* found = value(key);
  if (found == nullptr) return std::nullopt;
  USER_CHECK(found->is_string(), "[{}] {} must be a string, but is {}", where_, name(key), shown_json(*found));
  return found->get<std::string>();
}

std::vector<std::int64_t> JsonFields::find_integers(std::string_view key) const {
  const auto* found = value(key);
  std::vector<std::int64_t> result;
  if (found == nullptr) return result;
  if (!found->is_array()) return {to_integer(*found, name(key), where_)};
  for (const auto& item : *found) result.push_back(to_integer(item, name(key), where_));
  return result;
}

std::optional<JsonFields> JsonFields::find_object(std::string_view key) const {
  const auto* found = value(key);
  if (found == nullptr) return std::nullopt;
  return JsonFields(*found, where_, name(key) + ".");
}

std::optional<std::string> GgufFields::find_text(std::string_view key) const {
  const auto text = gguf_->find_text(name(key));
  if (!text) return std::nullopt;
  return std::string(*text);
}

void read_list(const JsonFields& fields, std::string_view key, Range<double> range,
               const std::vector<double*>& numbers) {
  const Json* list = fields.value(key);
  if (list == nullptr) return;
  USER_CHECK(list->is_array() && list->size() == numbers.size(), "[{}] {} must be a list of {} numbers, but is {}",
             fields.where(), fields.name(key), numbers.size(), shown_json(*list));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Json& one = (*list)[i];
    USER_CHECK(one.is_number() && one.get<double>() >= range.least && one.get<double>() <= range.greatest,
               "[{}] {} must be {} to {}, but has {}", fields.where(), fields.name(key), range.least, range.greatest,
               shown_json(one));
    *numbers[i] = one.get<double>();
  }
}

}  // namespace weft
