#pragma once

// A row program of one level that adds a column to itself `count` times.

#include "codegen/row_program.h"

namespace weft {

inline RowProgram doubled_rows(std::int64_t columns, int times) {
  RowProgram program;
  program.columns = columns;
  program.buffers = {{.row_stride = columns}, {.is_output = true, .row_stride = columns}};
  int value = program.add({.op = RowOp::load, .domain = RowDomain::element, .buffer = 0});
  for (int i = 0; i < times; ++i) value = program.add({.op = RowOp::add, .a = value, .b = value});
  program.stores.push_back({1, value, RowDomain::element});
  program.finish();
  return program;
}

}  // namespace weft
