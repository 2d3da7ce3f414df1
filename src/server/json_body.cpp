#include "server/json_body.h"

#include <iterator>
#include <unordered_map>

#include <fmt/format.h>

#include "base/text.h"
#include "server/api_error.h"

namespace weft {
namespace {

constexpr std::size_t kMostLevels = 128;
constexpr std::size_t kMostKeys = 1'000'000;
constexpr std::size_t kLongestShown = 100;

}  // namespace

JsonBody::JsonBody(std::string text) : text_(std::move(text)) {
  if (text_.starts_with("\xEF\xBB\xBF")) throw wrong_type("the body must not begin with a byte order mark", "");
  text_.reserve(text_.size() + simdjson::SIMDJSON_PADDING);
  simdjson::dom::element root;
  // The reader refuses the level of this number. It does not count an empty list or object.
  simdjson::error_code error = parser_.allocate(text_.size(), kMostLevels + 1);
  if (error == simdjson::SUCCESS) error = parser_.parse(text_).get(root);
  if (error == simdjson::DEPTH_ERROR)
    throw wrong_type(fmt::format("the body must be nested at most {} deep", kMostLevels), "");
  if (error != simdjson::SUCCESS)
    throw wrong_type(fmt::format("the body is not JSON: {}", simdjson::error_message(error)), "");
  if (root.get(object_) != simdjson::SUCCESS)
    throw wrong_type(fmt::format("the body must be a JSON object, but is {}", shown(root)), "");
}

namespace {

// Of a repeated key the last value counts. Json looks for a key at one member after the other.
Json object_of(const simdjson::dom::object& members, const std::string& field) {
  Json::object_t object;
  std::unordered_map<std::string_view, std::size_t> positions;
  for (const auto [key, item] : members) {
    const auto [known, is_new] = positions.try_emplace(key, object.size());
    if (is_new) {
      object.emplace_back(std::string(key), to_json(item, field));
    } else {
      std::next(object.begin(), static_cast<std::ptrdiff_t>(known->second))->second = to_json(item, field);
    }
  }
  return object;
}

}  // namespace

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
      return object_of(members, field);
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

}  // namespace weft
