#pragma once

// A JSON object as a page of HTML that has all it needs in itself: no script, and nothing from elsewhere.

#include <string>

#include "base/json.h"

namespace weft {

// Each key of the object becomes a part of the page that folds: lists of objects are tables, with a column for each key
// that one of them has, other objects are tables of their keys, and null is "none". `text` precedes the parts, as it
// is.
std::string json_page(const std::string& title, const std::string& text, const Json& object);

}  // namespace weft
