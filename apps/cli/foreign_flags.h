#pragma once

// Flags of llama.cpp, mlx-lm and vLLM whose names here are others, or which have no counterpart here.

#include <string_view>

namespace weft {

// Returns what to use in place of the flag, named with its dashes; "" for a flag that is not in the table.
std::string_view advice_on(std::string_view flag);

}  // namespace weft
