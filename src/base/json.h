#pragma once

// JSON as values, whose members keep the order in which they were set, and as text. Reading and writing text is
// compiled once, in json.cpp: as templates of the library, every file that does it would compile it anew.

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace weft {

using Json = nlohmann::ordered_json;

// In one line, or with so many blanks more for each level. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const Json& json, int indent = -1);
// The same in one line of ASCII.
std::string json_ascii(const Json& json);

// A value that is_discarded() where the text is not JSON.
Json parse_json(std::string_view text);

struct JsonLimits {
  std::size_t most_bytes;
  int deepest;
  bool keys_once = false;  // else the last of several equal keys of an object counts
};
// UserError, `[where] ...`, for text that is not JSON or exceeds the limits.
Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits);

}  // namespace weft
