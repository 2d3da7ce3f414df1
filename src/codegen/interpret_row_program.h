#pragma once

// Runs a row program in double precision, value by value over whole rows: what its machine code is held against. Only
// `convert` and what is read round, so results differ from those of f32 by the roundings of each operation.

#include <cstdint>
#include <vector>

#include "codegen/row_program.h"

namespace weft {

// For each store, in order: what it would write, before it is rounded to the buffer's dtype, row after row. `buffers`
// as RowFunction takes them; outputs and scratch are not touched and may be null.
std::vector<std::vector<double>> interpret_row_program(const RowProgram& program, const void* const* buffers,
                                                       std::int64_t rows);

}  // namespace weft
