#pragma once

// Editors on Windows may write a UTF-8 byte order mark before the text of a file. The parser of base/json.h skips it,
// but simdjson does not, so each reader of a file that calls simdjson removes it.

#include <string_view>

namespace weft {

inline std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

}  // namespace weft
