#pragma once

// JSON values, whose members keep insertion order, and JSON text. Only json.cpp compiles the parser and the writer;
// they are templates of the library, and each including file would compile them again.

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace weft {

using Json = nlohmann::ordered_json;

// The text in one line, or with `indent` blanks for each level. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const Json& json, int indent = -1);
// The same, in one line of ASCII.
std::string json_ascii(const Json& json);

// Parses the text. The result is_discarded() if the text is not JSON.
Json parse_json(std::string_view text);

struct JsonLimits {
  std::size_t most_bytes;
  int deepest;
  bool keys_once = false;  // false: the last of several equal keys of an object counts
};
// UserError, `[where] ...`, for text that is not JSON or exceeds the limits.
Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits);

}  // namespace weft
