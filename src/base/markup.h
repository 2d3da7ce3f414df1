#pragma once

// Text in HTML.

#include <string>
#include <string_view>

namespace weft {

// Escapes & < > " and ', so that the text means itself between tags and in attributes.
std::string escape_markup(std::string_view text);

}  // namespace weft
