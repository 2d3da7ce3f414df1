#pragma once

// Base64 (RFC 4648, section 4).

#include <optional>
#include <string>
#include <string_view>

namespace weft {

// Nullopt if the text is not base64; '=' at the end may be missing.
std::optional<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);

}  // namespace weft
