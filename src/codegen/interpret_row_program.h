#pragma once

// Runs a row program in double precision, value by value over whole rows. Tests compare machine code with it. Only
// `convert` and loaded values round, so results differ from f32 results by the rounding of each operation.

#include <cstdint>
#include <vector>

#include "codegen/row_program.h"

namespace weft {

// Returns, for each store in order, the values it would write, before they are rounded to the buffer's dtype, row after
// row. `buffers` are as for RowFunction. Outputs and scratch are not accessed and may be null.
std::vector<std::vector<double>> interpret_row_program(const RowProgram& program, const void* const* buffers,
                                                       std::int64_t rows);

}  // namespace weft
