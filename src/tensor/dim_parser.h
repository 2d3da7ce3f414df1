#pragma once

// Parses dimensions: integer, symbol, e + e, e - e, e * e, -e, align(e, k), ceildiv(e, k), floordiv(e, k), (e). Blanks,
// including line ends, are allowed between any two parts.

#include <cstddef>
#include <string_view>

#include "tensor/dim.h"

namespace weft {

// Parses the longest dimension at `position` and leaves `position` directly after it. Throws ParseError (a UserError)
// if there is none, or if it nests deeper than 32 or is longer than 4096 bytes, and UserError if it overflows 64 bits.
Dim parse_dim(std::string_view text, std::size_t& position);
// The whole text must be one dimension.
Dim parse_dim(std::string_view text);

// Parses dims between `open` and `close`, separated by commas: [s0, 576]. Throws ParseError if there are more than
// `max_count`.
Shape parse_shape(std::string_view text, std::size_t& position, char open, char close, std::size_t max_count);

}  // namespace weft
