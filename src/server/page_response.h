#pragma once

#include "server/http_message.h"

namespace weft {

// The page at "/".
HttpResponse page_response();

}  // namespace weft
