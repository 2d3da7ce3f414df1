#pragma once

// The id that a client gives its request.

#include <string>
#include <string_view>

#include "server/http_message.h"

namespace weft {

inline constexpr const char* kIdField = "x-request-id";

// Whether it is an id: up to 128 printable characters of ASCII.
bool is_request_id(std::string_view text);
// That of the head; "" if it gives none, or something else.
std::string given_request_id(const HttpRequest& request);

}  // namespace weft
