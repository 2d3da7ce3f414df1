#pragma once

// Reads the JSON of a request by RFC 8259: no NaN, no trailing commas, no byte order mark, at most 128 levels. An
// integer beyond 64 bits becomes the nearest real number.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <simdjson.h>

#include "base/json.h"

namespace weft {

class JsonBody {
 public:
  // ApiError 400 for a text that is not JSON. Messages call the text `name`.
  explicit JsonBody(std::string text, std::string_view name = "the body");

  // Valid as long as this object. ApiError 400 for a value that is no object.
  simdjson::dom::object object() const;
  simdjson::dom::element root() const { return root_; }

 private:
  simdjson::error_code parse(simdjson::dom::element& root);

  std::string text_;
  simdjson::dom::parser parser_;
  std::string name_;
  simdjson::dom::element root_;
};

// The members of an object, each key once: of several equal keys the last one counts, even if its value is null.
std::vector<std::pair<std::string_view, simdjson::dom::element>> last_members(const simdjson::dom::object& object);
std::optional<simdjson::dom::element> last_member(const simdjson::dom::object& object, std::string_view key);

// The value as Json, with the last of several equal keys. ApiError 400, with `field`, for an object of more than 1,000
// keys: Json looks keys up one after the other.
Json to_json(simdjson::dom::element value, const std::string& field);

// The value for a message, on one line and cut if it is long.
std::string shown(simdjson::dom::element value);
std::string shown(const Json& value);

}  // namespace weft
