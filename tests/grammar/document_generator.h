#pragma once

// Documents drawn for a schema, with its members in their order. Most are valid: is_valid() says which.

#include <random>

#include "base/json.h"

namespace weft {

Json drawn_document(const Json& schema, std::mt19937& random);

}  // namespace weft
