#pragma once

// YAML as far as files of flags and settings need it.

#include <string>

#include "base/json.h"

namespace weft {

// The first document. Plain words are null, numbers and true or false as in YAML 1.2; other scalars are texts.
// UserError that names `[where]` and the line for what is not YAML, for a key that is a list or object or is there
// twice, and for a document that is larger than such a file may be, also by its aliases. Tags are not looked at.
Json json_of_yaml(const std::string& text, const std::string& where);

}  // namespace weft
