#pragma once

// Formats rows of reports as comma-separated lines with each field quoted, as in llama-bench.

#include <string>

#include "base/json.h"

namespace weft {

// Returns the values of an object in its order, or with `names` its keys. Lists are omitted; null is an empty field.
std::string csv_line(const Json& row, bool names);

}  // namespace weft
