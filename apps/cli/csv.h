#pragma once

// Rows of reports as comma-separated lines, every field quoted, as llama-bench writes them.

#include <string>

#include "base/json.h"

namespace weft {

// The values of an object in its order, or with `names` its keys. Lists are left out; null is an empty field.
std::string csv_line(const Json& row, bool names);

}  // namespace weft
