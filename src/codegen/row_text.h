#pragma once

// A row program as C++: the same walk as the machine code, to be read, and to be compiled in tests. It stands on
// codegen/vector_math.h alone.

#include <string>

#include "codegen/row_program.h"

namespace weft {

// What stands once before the functions: vectors of `lanes` floats, 4, 8 or 16.
std::string row_text_prologue(int lanes);

// The function of one finished program, for that many lanes.
std::string row_text(const RowProgram& program, int lanes);

}  // namespace weft
