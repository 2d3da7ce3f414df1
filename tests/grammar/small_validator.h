#pragma once

// Whether a JSON value follows a schema: the rules of JSON Schema written down again, without $ref, formats and what
// else the schemas of the tests do not have. The order of members and white space do not count.

#include "base/json.h"

namespace weft {

bool is_valid(const Json& value, const Json& schema);

}  // namespace weft
