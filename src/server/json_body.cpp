#include "server/json_body.h"

#include <algorithm>
#include <new>
#include <unordered_map>

#include <fmt/format.h>

#include "base/json_position.h"
#include "base/text.h"
#include "io/byte_order_mark.h"
#include "server/api_error.h"

namespace weft {
namespace {

constexpr std::size_t kMostLevels = 128;
constexpr std::size_t kMostKeys = 1'000'000;
constexpr std::size_t kLongestShown = 100;

// The parser knows integers of 64 bits alone. All larger ones are read as the nearest double: 1e0 is no integer to it.
std::string with_large_integers_as_reals(std::string_view text) {
  constexpr std::size_t kDigits = 18;  // of an integer that fits
  std::string result;
  bool is_in_text = false;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (is_in_text && c == '\\') {
      result += text.substr(i, 2);
      i += 2;
      continue;
    }
    is_in_text ^= c == '"';
    const std::size_t end = is_in_text ? i : std::min(text.find_first_not_of("0123456789", i), text.size());
    if (end == i) {
      result += c;
      ++i;
      continue;
    }
    result += text.substr(i, end - i);
    const std::string_view before = text.substr(0, i - (i > 0 && (text[i - 1] == '-' || text[i - 1] == '+') ? 1 : 0));
    const bool is_rest = before.ends_with('.') || before.ends_with('e') || before.ends_with('E');
    const bool goes_on = end < text.size() && (text[end] == '.' || text[end] == 'e' || text[end] == 'E');
    if (end - i > kDigits && !is_rest && !goes_on) result += "e0";
    i = end;
  }
  return result;
}

// Where the text stops to be JSON, which simdjson does not say: " (at byte 7 of 9)"; "" if another reader takes it.
std::string position_of_error(const std::string& text) {
  const std::optional<std::size_t> at = json_error_position(text);
  return at ? fmt::format(" (at byte {} of {})", *at, text.size()) : "";
}

// The levels of a text that may be no JSON.
std::size_t levels_of(std::string_view text) {
  std::size_t level = 0, most = 0;
  bool is_in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') is_in_text = !is_in_text;
    if (is_in_text && c == '\\') ++i;
    if (is_in_text) continue;
    if (c == '{' || c == '[') most = std::max(most, ++level);
    if ((c == '}' || c == ']') && level > 0) --level;
  }
  return most;
}

}  // namespace

JsonBody::JsonBody(std::string text, std::string_view name) : text_(std::move(text)), name_(name) {
  if (without_byte_order_mark(text_).size() < text_.size())
    throw wrong_type(fmt::format("{} must not begin with a byte order mark", name), "");
  simdjson::error_code error = parse(root_);
  if (error == simdjson::NUMBER_ERROR) {
    text_ = with_large_integers_as_reals(text_);
    error = parse(root_);
  }
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();
  if (error == simdjson::DEPTH_ERROR)
    throw wrong_type(fmt::format("{} must be nested at most {} deep", name, kMostLevels), "");
  if (error != simdjson::SUCCESS)
    throw wrong_type(
        fmt::format("{} is not JSON: {}{}", name, simdjson::error_message(error), position_of_error(text_)), "");
}

simdjson::dom::object JsonBody::object() const {
  simdjson::dom::object object;
  if (root_.get(object) != simdjson::SUCCESS)
    throw wrong_type(fmt::format("{} must be a JSON object, but is {}", name_, shown(root_)), "");
  return object;
}

simdjson::error_code JsonBody::parse(simdjson::dom::element& root) {
  text_.reserve(text_.size() + simdjson::SIMDJSON_PADDING);
  const auto parse_within = [&](std::size_t levels) {
    const simdjson::error_code error = parser_.allocate(text_.size(), levels);
    return error == simdjson::SUCCESS ? parser_.parse(text_).get(root) : error;
  };
  // The reader refuses the level of this number, but not an empty list or object there.
  const simdjson::error_code error = parse_within(kMostLevels);
  const bool has_last_level = error == simdjson::DEPTH_ERROR && levels_of(text_) <= kMostLevels;
  return has_last_level ? parse_within(kMostLevels + 1) : error;
}

std::vector<std::pair<std::string_view, simdjson::dom::element>> last_members(const simdjson::dom::object& object) {
  std::vector<std::pair<std::string_view, simdjson::dom::element>> members;
  std::unordered_map<std::string_view, std::size_t> positions;
  for (const auto [key, value] : object) {
    const auto [known, is_new] = positions.try_emplace(key, members.size());
    if (is_new) {
      members.emplace_back(key, value);
    } else {
      members[known->second].second = value;
    }
  }
  return members;
}

std::optional<simdjson::dom::element> last_member(const simdjson::dom::object& object, std::string_view key) {
  std::optional<simdjson::dom::element> last;
  for (const auto [name, value] : object)
    if (name == key) last = value;
  return last;
}

// The depth is that of JsonBody at most.
Json to_json(simdjson::dom::element value, const std::string& field) {
  using Type = simdjson::dom::element_type;
  switch (value.type()) {
    case Type::ARRAY: {
      Json list = Json::array();
      for (const simdjson::dom::element item : simdjson::dom::array(value)) list.push_back(to_json(item, field));
      return list;
    }
    case Type::OBJECT: {
      const simdjson::dom::object members(value);
      if (members.size() > kMostKeys)
        throw wrong_value(fmt::format("[{}] an object must have at most {} keys", field, kMostKeys), field);
      Json::object_t object;
      for (const auto& [key, item] : last_members(members)) object.emplace_back(std::string(key), to_json(item, field));
      return object;
    }
    case Type::INT64:
      return std::int64_t(value);
    case Type::UINT64:
      return std::uint64_t(value);
    case Type::DOUBLE:
      return double(value);
    case Type::BOOL:
      return bool(value);
    case Type::STRING:
      return std::string(std::string_view(value));
    default:
      return nullptr;
  }
}

std::string shown(simdjson::dom::element value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return quote(text, kLongestShown);
  return simdjson::minify(value);
}

std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return value.is_string() ? quote(value.get_ref<const std::string&>(), kLongestShown) : json_text(value);
}

}  // namespace weft
