#pragma once

// Pointwise primitives as values of a row program.

#include <vector>

#include "codegen/row_program.h"
#include "ir/graph.h"

namespace weft {

// Adds to the program the value that the node computes from its operands' values, before rounding to the dtype that the
// graph has in memory. Refuses (row_shape.h) what no row program computes.
int add_pointwise(RowProgram& program, const Node& node, const std::vector<int>& operands);

int add_constant(RowProgram& program, double number);
int add_unary(RowProgram& program, RowOp op, int a);
int add_binary(RowProgram& program, RowOp op, int a, int b);

}  // namespace weft
