#include "base/json.h"

#include <set>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace weft {

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string json_ascii(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

Json parse_json(std::string_view text) { return Json::parse(text, nullptr, false); }

Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits) {
  USER_CHECK(text.size() <= limits.most_bytes, "[{}] must have at most {} bytes, but has {}", where, limits.most_bytes,
             text.size());
  std::vector<std::set<std::string>> keys;  // one set per open object
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    USER_CHECK(depth <= limits.deepest, "[{}] must be nested at most {} deep, but is deeper", where, limits.deepest);
    if (!limits.keys_once) return true;
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      USER_CHECK(keys.back().insert(key).second, "[{}] has the key {} twice", where, quote(key));
    }
    return true;
  };
  USER_CHECK(!trim(text).empty(), "[{}] wanted JSON, but is empty", where);
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& error) {
    // Messages of the library begin with "[json.exception.parse_error.101] ".
    const std::string message = error.what();
    const auto end = message.find("] ");
    fail_user("[{}] wanted JSON, but: {}", where,
              quote(end == std::string::npos ? message : message.substr(end + 2), 400));
  }
}

}  // namespace weft
