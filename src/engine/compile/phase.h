#pragma once

#include <cstdint>

namespace weft {

// Whether the rows of a step are tokens of prompts or generated ones. It is the token's origin: a generated token that
// is computed once more, because its sequence lost its pages, is of the phase decode still.
enum class Phase : std::uint8_t { prompt, decode };

}  // namespace weft
