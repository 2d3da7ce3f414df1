#pragma once

// Reads dimensions: integer, symbol, e + e, e - e, e * e, -e, align(e, k), ceildiv(e, k), floordiv(e, k), (e).
// Blanks, line ends among them, may stand between any two parts.

#include <cstddef>
#include <string_view>

#include "tensor/dim.h"

namespace weft {

// Reads the longest dimension at `position` and leaves `position` right behind it. ParseError (a UserError) when there
// is none, when it nests deeper than 32 or is longer than 4096 bytes; UserError when it leaves 64 bits.
Dim parse_dim(std::string_view text, std::size_t& position);
// The whole text is one dimension.
Dim parse_dim(std::string_view text);

// The dims between `open` and `close`, separated by commas: [s0, 576]. ParseError when there are more than
// `max_count`.
Shape parse_shape(std::string_view text, std::size_t& position, char open, char close, std::size_t max_count);

}  // namespace weft
