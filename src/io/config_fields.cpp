#include "io/config_fields.h"

#include <cmath>
#include <utility>

#include "base/text.h"

namespace weft {
namespace {

constexpr std::size_t kLongestConfig = 16 << 20;
constexpr int kDeepest = 64;  // printing a value recurses

// For messages: the value as JSON, cut where long.
std::string shown(const nlohmann::json& value) {
  constexpr std::size_t kLongest = 80;
  auto text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

std::int64_t to_integer(const nlohmann::json& value, const std::string& name, const std::string& where) {
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= INT64_MAX : value.is_number_integer();
  USER_CHECK(fits, "[{}] {} must be an integer, but is {}", where, name, shown(value));
  return value.get<std::int64_t>();
}

}  // namespace

nlohmann::json parse_config_json(std::string_view text, const std::string& where) {
  USER_CHECK(text.size() <= kLongestConfig, "[{}] must have at most {} bytes, but has {}", where, kLongestConfig,
             text.size());
  try {
    auto json = nlohmann::json::parse(text, [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
      USER_CHECK(depth <= kDeepest, "[{}] must be nested at most {} deep, but is deeper", where, kDeepest);
      return true;
    });
    USER_CHECK(json.is_object(), "[{}] wanted a JSON object, but is {}", where, shown(json));
    return json;
  } catch (const nlohmann::json::exception& error) {
    // Its messages begin with "[json.exception.parse_error.101] ".
    const std::string message = error.what();
    const auto end = message.find("] ");
    fail_user("[{}] wanted JSON, but: {}", where,
              quote(end == std::string::npos ? message : message.substr(end + 2), 200));
  }
}

JsonFields::JsonFields(const nlohmann::json& object, std::string where, std::string prefix)
    : object_(&object), where_(std::move(where)), prefix_(std::move(prefix)) {
  USER_CHECK(object.is_object(), "[{}] {} must be an object, but is {}", where_,
             prefix_.empty() ? "the text" : prefix_.substr(0, prefix_.size() - 1), shown(object));
}

const nlohmann::json* JsonFields::value(std::string_view key) const {
  const auto at = object_->find(key);
  return at == object_->end() || at->is_null() ? nullptr : &*at;
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
             name(key), shown(*found));
  return found->get<double>();
}

std::optional<bool> JsonFields::find_boolean(std::string_view key) const {
  const auto* found = value(key);
  if (found == nullptr) return std::nullopt;
  USER_CHECK(found->is_boolean(), "[{}] {} must be true or false, but is {}", where_, name(key), shown(*found));
  return found->get<bool>();
}

std::optional<std::string> JsonFields::find_text(std::string_view key) const {
  const auto* found = value(key);
  if (found == nullptr) return std::nullopt;
  USER_CHECK(found->is_string(), "[{}] {} must be a string, but is {}", where_, name(key), shown(*found));
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

}  // namespace weft
