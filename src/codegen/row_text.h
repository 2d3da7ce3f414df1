#pragma once

// Prints a row program as C++, from the same walk as the machine code. People read it, and tests compile it. The text
// needs codegen/vector_math.h only.

#include <string>

#include "codegen/row_program.h"

namespace weft {

// The text before the functions; needed once. It defines vectors of `lanes` floats: 4, 8 or 16.
std::string row_text_prologue(int lanes);

// The function of one finished program, for that many lanes.
std::string row_text(const RowProgram& program, int lanes);

}  // namespace weft
