#pragma once

// The C++ text of row programs as machine code.

#include <vector>

#include "base/shared_library.h"
#include "codegen/row_program.h"

namespace weft {

// A library of all these functions under their names, compiled by the compiler of this machine for vectors of this
// number of lanes.
SharedLibrary compiled_row_text(const std::vector<RowProgram>& programs, int lanes);

}  // namespace weft
