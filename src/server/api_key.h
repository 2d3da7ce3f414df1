#pragma once

// Whether a request may be answered: --api-key.

#include <string>
#include <vector>

#include "server/http_message.h"

namespace weft {

// Whether the field Authorization has one of the keys, as "Bearer KEY", or the field X-Api-Key, which Anthropic's
// clients send. Without keys every request may be answered.
bool has_api_key(const HttpRequest& head, const std::vector<std::string>& keys);

}  // namespace weft
